(** * Block verification, and hierarchical speculative decoding.

    A whole block is drafted.  With w the capped product of p/q over the drafts so far, the longest prefix whose coin
    comes up heads is kept; the coins are tossed from the whole block down.  *)
From Lossless Require Import Probability OnePosition Texts Chain.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).
Variable State : Type.
Variables (p : seq T -> T -> R) (q : State -> seq T -> seq T -> T -> R).

(** The pmf [p] with the weight [w]. *)
Definition weighted (w : R) (r : T -> R) : T -> R := fun x => times N w (r x).

(** R / (R + 1 - w) with R = sum (w p - q)+; 1 where that is 0/0. *)
Definition block_heads (w : R) (r u : T -> R) : R :=
  let spare := total N V (excess N (weighted w r) u) in
  if less N (zero N) spare || less N w (one N) then over N spare (minus N (plus N spare (one N)) w) else w.

(** The drafts [ds] behind the text [c] and the drafts [ks], of capped ratio [w]: the longest prefix whose coin comes up
    heads and one more token, or [None] if nothing down to [ks] itself stays. *)
Fixpoint block_coins (s : State) (c : seq T) (w : R) (ks ds : seq T) : dist R (option (seq T * T * nat)) :=
  let r := p (c ++ ks) in
  if ds is d :: ds' then
    let u := q s c ks in
    bind N (block_coins s c (accept_probability N (weighted w r) u d) (rcons ks d) ds') (fun o =>
      if o is Some result then ret N (Some result) else
      bind N (flip N (block_heads w r u)) (fun heads =>
        if heads then bind N (draw N V (excess_law N V (weighted w r) u)) (fun x => ret N (Some (ks, x, size ks)))
        else ret N None))
  else
    bind N (flip N w) (fun heads =>
      if heads then bind N (draw N V r) (fun x => ret N (Some (ks, x, size ks))) else ret N None).

(** Hierarchical speculative decoding: the plain product [ratio] of p/q, divided by the [highest] it has been. *)
Definition hierarchical_heads (w : R) (r u : T -> R) : R :=
  let above := total N V (excess N (weighted w r) u) in
  let below := total N V (excess N u (weighted w r)) in
  if less N (zero N) above || less N (zero N) below then over N above (if less N above below then below else above)
  else one N.

Fixpoint hierarchical_coins (s : State) (c : seq T) (ratio highest : R) (ks ds : seq T) : dist R (option (seq T * T * nat)) :=
  let r := p (c ++ ks) in
  let w := over N ratio highest in
  if ds is d :: ds' then
    let u := q s c ks in
    let ratio' := over N (times N ratio (r d)) (u d) in
    let highest' := if less N highest ratio' then ratio' else highest in
    bind N (hierarchical_coins s c ratio' highest' (rcons ks d) ds') (fun o =>
      if o is Some result then ret N (Some result) else
      bind N (flip N (hierarchical_heads w r u)) (fun heads =>
        if heads then bind N (draw N V (excess_law N V (weighted w r) u)) (fun x => ret N (Some (ks, x, size ks)))
        else ret N None))
  else
    bind N (flip N w) (fun heads =>
      if heads then bind N (draw N V r) (fun x => ret N (Some (ks, x, size ks))) else ret N None).

(** The whole block; that nothing stays at all has probability zero, and is no outcome. *)
Definition something_stays (d : dist R (option (seq T * T * nat))) : dist R (seq T * T * nat) :=
  bind N d (fun o => if o is Some result then ret N result else [::]).

Definition block_judge (s : State) (c ds : seq T) : dist R (seq T * T * nat) :=
  something_stays (block_coins s c (one N) [::] ds).

Definition hierarchical_judge (s : State) (c ds : seq T) : dist R (seq T * T * nat) :=
  something_stays (hierarchical_coins s c (one N) (one N) [::] ds).

Variables (plan : State -> seq T -> nat) (more : State -> seq T -> seq T -> bool).
Variable judge : State -> seq T -> seq T -> dist R (seq T * T * nat).
Variable next : State -> seq T -> seq T -> seq T * T * nat -> State.

(** A round that judges the block as a whole. *)
Definition block_round (s : State) n (c : seq T) : dist R (State * (seq T * T * nat)) :=
  bind N (propose N V more q (minn (plan s c) n.-1) s c [::]) (fun ds =>
  bind N (judge s c ds) (fun result => ret N (next s c ds result, result))).

End Programs.

Section Step.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).

Lemma weightedE w (r : T -> R) x : weighted N w r x = w * r x.
Proof. by []. Qed.

Lemma sum_weighted w (r : T -> R) : \sum_x r x = 1 -> \sum_x weighted N w r x = w.
Proof. by move=> r1; rewrite -mulr_sumr r1 mulr1. Qed.

(** What a weight of [w] on p and a draft from q leave over. *)
Definition spare w (r u : T -> R) : R := \sum_x excess N (weighted N w r) u x.

Lemma spare_ge0 w r u : 0 <= spare w r u.
Proof. by apply: sumr_ge0 => x _; apply: excess_ge0. Qed.

Lemma sum_minimum w r u : \sum_x r x = 1 -> \sum_x Num.min (u x) (w * r x) = w - spare w r u.
Proof.
move=> r1; apply/eqP; rewrite eq_sym subr_eq; apply/eqP.
by rewrite -{1}(sum_weighted w r1) -big_split; apply: eq_bigr => x _; exact: esym (min_excess (weighted N w r) u x).
Qed.

(** ** One draft under a weight.
    A draft enters what is below it with the weight a(d), where q a = min(q, w p).  If nothing is accepted below, then
    with probability h a token is drawn from the excess, else [fail] happens.  If h (R + 1 - w) = R, then p comes out
    with weight w, and [fail] with 1 - w. *)
Lemma weighted_step w (r u a owed F : T -> R) h fail : \sum_x r x = 1 -> \sum_x u x = 1 ->
  (forall d, u d * a d = Num.min (u d) (w * r d)) ->
  (forall x, spare w r u * owed x = excess N (weighted N w r) u x) ->
  (1 - w + spare w r u) * h = spare w r u ->
  \sum_d u d * (a d * F d + (1 - a d) * (h * (\sum_x owed x * F x) + (1 - h) * fail))
  = w * (\sum_x r x * F x) + (1 - w) * fail.
Proof.
move=> r1 u1 ua owedE hE; set rest := h * _ + _.
rewrite (eq_bigr (fun d => Num.min (u d) (w * r d) * F d + (u d - Num.min (u d) (w * r d)) * rest)); last first.
  by move=> d _; rewrite mulrDr !mulrA mulrBr mulr1 ua.
rewrite big_split -mulr_suml sumrB u1 (sum_minimum w u r1) /=.
have -> : (1 - (w - spare w r u)) * rest = \sum_x excess N (weighted N w r) u x * F x + (1 - w) * fail.
  rewrite opprB addrA (addrAC 1) mulrDr !mulrA hE mulrBr mulr1 hE addrK mulr_sumr.
  by congr (_ + _); apply: eq_bigr => x _; rewrite mulrA owedE.
rewrite addrA -big_split mulr_sumr; congr (_ + _); apply: eq_bigr => x _ /=.
by rewrite -mulrDl -weightedE min_excess weightedE mulrA.
Qed.

Lemma block_heads_balance w (r u : T -> R) : w <= 1 ->
  (1 - w + spare w r u) * block_heads N V w r u = spare w r u.
Proof.
move=> w1; have s0 := spare_ge0 w r u; rewrite /block_heads total_token -/(spare w r u) /=.
have [pos|neg] := boolP (_ || _).
  have -> : spare w r u + 1 - w = 1 - w + spare w r u by rewrite -addrA addrC.
  rewrite mulrCA divff ?mulr1 // gt_eqF //.
  case/orP: pos => h; first by rewrite ltr_paddl // subr_ge0.
  by rewrite ltr_paddr // subr_gt0.
move: neg; rewrite negb_or -!leNgt => /andP[s_le w_ge].
have -> : w = 1 by apply/eqP; rewrite eq_le w1.
by rewrite subrr add0r mulr1.
Qed.

Lemma hierarchical_heads_balance w (r u : T -> R) : w <= 1 -> \sum_x r x = 1 -> \sum_x u x = 1 ->
  (1 - w + spare w r u) * hierarchical_heads N V w r u = spare w r u.
Proof.
move=> w1 r1 u1; have s0 := spare_ge0 w r u.
rewrite /hierarchical_heads !total_token -/(spare w r u) /=.
have belowE : \sum_x excess N u (weighted N w r) x = 1 - w + spare w r u.
  have : \sum_x Num.min (u x) (w * r x) + \sum_x excess N u (weighted N w r) x = 1.
    by rewrite -big_split -[RHS]u1; apply: eq_bigr => x _; rewrite minC; exact: min_excess u (weighted N w r) x.
  rewrite sum_minimum // => /eqP; rewrite addrC eq_sym -subr_eq => /eqP <-.
  by rewrite opprB addrA addrAC.
rewrite belowE.
have B_ge : spare w r u <= 1 - w + spare w r u by rewrite ler_addr subr_ge0.
have -> : (if spare w r u < 1 - w + spare w r u then 1 - w + spare w r u else spare w r u) = 1 - w + spare w r u.
  by case: ltP => // h; apply/eqP; rewrite eq_le B_ge h.
have [pos|neg] := boolP (_ || _).
  rewrite mulrCA divff ?mulr1 // gt_eqF //.
  by case/orP: pos => // h; apply: lt_le_trans B_ge.
move: neg; rewrite negb_or -!leNgt => /andP[s_le b_le]; rewrite mulr1.
by apply/eqP; rewrite eq_le B_ge (le_trans b_le).
Qed.

End Step.

Section Theorems.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (State : Type) (plan : State -> seq T -> nat) (more : State -> seq T -> seq T -> bool).
Variables (p : seq T -> T -> R) (q : State -> seq T -> seq T -> T -> R).
Hypotheses (Hp : forall c, pmf (p c)) (Hq : forall s c ds, pmf (q s c ds)).
Variable next : State -> seq T -> seq T -> seq T * T * nat -> State.

(** The average of [L] where something stays, and [fail] where nothing does. *)
Definition or_else (L : seq T * T * nat -> R) (fail : R) (o : option (seq T * T * nat)) : R :=
  if o is Some result then L result else fail.

Lemma E_something_stays d K : E (something_stays N d) K = E d (or_else K 0).
Proof. by rewrite E_bind; apply: E_ext => -[result|]; rewrite ?E_ret // /E big_nil. Qed.

Lemma capped_range w (r u : T -> R) d : 0 <= w -> 0 <= r d -> 0 <= accept_probability N (weighted N w r) u d <= 1.
Proof. by move=> w0 r0; apply: accept_range; rewrite weightedE mulr_ge0. Qed.

(** The target behind what is kept and the token after it. *)
Definition target_after n c f (result : seq T * T * nat) : R := behind p n c f (rcons result.1.1 result.1.2).

Lemma E_ending n c f ks w fail : (size ks < n)%N ->
  E (bind N (flip N w) (fun heads =>
      if heads then bind N (draw N V (p (c ++ ks))) (fun x => ret N (Some (ks, x, size ks))) else ret N None))
    (or_else (target_after n c f) fail)
  = w * behind p n c f ks + (1 - w) * fail.
Proof.
move=> kn; rewrite E_bind E_flip E_ret E_bind E_token -(target_behind _ _ _ kn).
by congr (_ * _ + _); apply: eq_bigr => x _; rewrite E_ret.
Qed.

Lemma E_coin n c f ks h (owed : T -> R) fail (o : option (seq T * T * nat)) :
  E (if o is Some result then ret N (Some result) else
     bind N (flip N h) (fun heads =>
       if heads then bind N (draw N V owed) (fun x => ret N (Some (ks, x, size ks))) else ret N None))
    (or_else (target_after n c f) fail)
  = or_else (target_after n c f) (h * (\sum_x owed x * behind p n c f (rcons ks x)) + (1 - h) * fail) o.
Proof.
case: o => [result|] /=; first by rewrite E_ret.
rewrite E_bind E_flip E_ret E_bind E_token; congr (_ * _ + _).
by apply: eq_bigr => x _; rewrite E_ret.
Qed.

(** ** The invariant of block verification.
    Drafts of any length, entered with the weight w, are accepted down to where they began with probability exactly w;
    what is then kept, with the token behind it and the target behind that, has the law of the target. *)
Theorem block_invariant n c f s : forall g w ks fail, 0 <= w <= 1 -> (size ks + g < n)%N ->
  E (propose N V more q g s c ks) (fun ds => E (block_coins N V p q s c w ks ds) (or_else (target_after n c f) fail))
  = w * behind p n c f ks + (1 - w) * fail.
Proof.
elim=> [|g IH] w ks fail /andP[w0 w1] gn; first by rewrite E_ret E_ending // -[size ks]addn0.
have kn : (size ks < n)%N by apply: leq_ltn_trans gn; rewrite leq_addr.
case m: (more s c ks); last by rewrite /propose m E_ret E_ending.
rewrite E_proposeS // -(target_behind _ _ _ kn).
set r := p (c ++ ks); set u := q s c ks.
have [r0 r1] := Hp (c ++ ks); have [u0 u1] := Hq s c ks.
rewrite -(@weighted_step _ _ w r u (accept_probability N (weighted N w r) u) (excess_law N V (weighted N w r) u) _
  (block_heads N V w r u)) //; first last.
- exact: block_heads_balance.
- by move=> x; exact: excess_lawE.
- by move=> d; apply: kept_mass => //; rewrite mulr_ge0.
apply: eq_bigr => d _; congr (_ * _).
rewrite -(IH _ (rcons ks d)) ?capped_range //; last by rewrite size_rcons addSnnS.
by apply: E_ext => later; rewrite /= E_bind; apply: E_ext => o; apply: E_coin.
Qed.

(** The same for hierarchical speculative decoding, entered with the capped ratio [ratio / highest]. *)
Theorem hierarchical_invariant n c f s : forall g ratio highest ks fail,
  0 <= ratio <= highest -> 0 < highest -> (size ks + g < n)%N ->
  E (propose N V more q g s c ks)
    (fun ds => E (hierarchical_coins N V p q s c ratio highest ks ds) (or_else (target_after n c f) fail))
  = ratio / highest * behind p n c f ks + (1 - ratio / highest) * fail.
Proof.
elim=> [|g IH] ratio highest ks fail /andP[a0 ab] b0 gn; first by rewrite E_ret E_ending // -[size ks]addn0.
have kn : (size ks < n)%N by apply: leq_ltn_trans gn; rewrite leq_addr.
case m: (more s c ks); last by rewrite /propose m E_ret E_ending.
rewrite E_proposeS // -(target_behind _ _ _ kn).
set r := p (c ++ ks); set u := q s c ks; set w := ratio / highest.
have w0 : 0 <= w by rewrite divr_ge0 // ltW.
have w1 : w <= 1 by rewrite ler_pdivr_mulr // mul1r.
have [r0 r1] := Hp (c ++ ks); have [u0 u1] := Hq s c ks.
rewrite -(@weighted_step _ _ w r u (accept_probability N (weighted N w r) u) (excess_law N V (weighted N w r) u) _
  (hierarchical_heads N V w r u)) //; first last.
- exact: hierarchical_heads_balance.
- by move=> x; exact: excess_lawE.
- by move=> d; apply: kept_mass => //; rewrite mulr_ge0.
apply: eq_bigr => d _; have [->|ud] := eqVneq (u d) 0; first by rewrite !mul0r.
have upos : 0 < u d by rewrite lt_neqAle eq_sym ud u0.
congr (_ * _).
set ratio' := ratio * r d / u d; set highest' := if highest < ratio' then ratio' else highest.
have a0' : 0 <= ratio' by rewrite divr_ge0 ?mulr_ge0.
have ab' : ratio' <= highest' by rewrite /highest'; case: (ltP highest).
have b0' : 0 < highest' by rewrite /highest'; case: (ltP highest) => // big; exact: lt_trans b0 big.
have -> : accept_probability N (weighted N w r) u d = ratio' / highest'.
  have wr : w * r d = ratio' * u d / highest by rewrite /w /ratio' divfK // mulrAC.
  rewrite acceptE weightedE wr ltr_pdivr_mulr // mulrC ltr_pmul2l // /highest'.
  have [small|] := ltP ratio' highest.
    by rewrite ltNge (ltW small) /= mulrAC (mulrAC (u d)) divff // mul1r.
  move=> large; have pos : 0 < ratio' by apply: lt_le_trans large.
  rewrite (divr_gt0 (mulr_gt0 upos pos) b0); move: large; rewrite le_eqVlt => /orP[/eqP eq | ->]; last by rewrite divff // gt_eqF.
  by rewrite eq ltxx divff // gt_eqF.
rewrite -(IH _ _ (rcons ks d)) ?a0' //; last by rewrite size_rcons addSnnS.
by apply: E_ext => later; rewrite /= E_bind; apply: E_ext => o; apply: E_coin.
Qed.

(** ** Block verification is lossless, for every gamma and every length rule that keeps the token at which it stops. *)
Theorem block_round_lossless : lossless_round p (block_round N V q plan more (block_judge N V p q) next).
Proof.
move=> s [//|n] c f K _ target; rewrite /block_round E_bind -behind_nothing.
set g := minn _ _; have gn : (g < n.+1)%N by rewrite ltnS geq_minr.
have /= := block_invariant (n := n.+1) c f s (g := g) (w := 1) (ks := [::]) 0; rewrite ler01 lexx => /(_ isT gn).
rewrite mul1r subrr mul0r addr0 => <-; apply: E_ext => ds; rewrite E_bind E_something_stays.
by apply: E_ext => -[[[ks x] a]|] //=; rewrite E_ret target.
Qed.

(** The texts of block verification have the law of the target alone. *)
Theorem block_verification_lossless eos slack n s c :
  same_law (decoded_text N eos (block_round N V q plan more (block_judge N V p q) next) slack n s c)
           (target_alone N V eos p n c).
Proof. by apply: decoded_text_law => //; exact: block_round_lossless. Qed.

(** ** Hierarchical speculative decoding, its last coin capped, is lossless. *)
Theorem hierarchical_round_lossless : lossless_round p (block_round N V q plan more (hierarchical_judge N V p q) next).
Proof.
move=> s [//|n] c f K _ target; rewrite /block_round E_bind -behind_nothing.
set g := minn _ _; have gn : (g < n.+1)%N by rewrite ltnS geq_minr.
have /= := hierarchical_invariant (n := n.+1) c f s (g := g) (ratio := 1) (highest := 1) (ks := [::]) 0.
rewrite ler01 lexx => /(_ isT ltr01 gn).
rewrite divr1 mul1r subrr mul0r addr0 => <-; apply: E_ext => ds; rewrite E_bind E_something_stays.
by apply: E_ext => -[[[ks x] a]|] //=; rewrite E_ret target.
Qed.

(** The texts of hierarchical speculative decoding have the law of the target alone. *)
Theorem hierarchical_lossless eos slack n s c :
  same_law (decoded_text N eos (block_round N V q plan more (hierarchical_judge N V p q) next) slack n s c)
           (target_alone N V eos p n c).
Proof. by apply: decoded_text_law => //; exact: hierarchical_round_lossless. Qed.

End Theorems.
