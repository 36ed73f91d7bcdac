(** * The exact law of each released implementation that is not lossless.

    Published code that differs from its paper, read in the releases.  Each theorem gives the law of one round as a sum of
    explicit masses; [decode] makes the law of a text of them. *)
From Lossless Require Import Probability OnePosition Texts Chain Converse Block Shortcuts Lengths FixedBlock.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).

(** ** Hierarchical speculative decoding: the plain ratio of the drafts [ds] behind the drafts [ks], and the highest it
    has been. *)
Fixpoint ratios (p u : seq T -> T -> R) (ratio highest : R) (ks ds : seq T) : R * R :=
  if ds is d :: ds' then
    let ratio' := over N (times N ratio (p ks d)) (u ks d) in
    ratios p u ratio' (if less N highest ratio' then ratio' else highest) (rcons ks d) ds'
  else (ratio, highest).

Definition capped_ratio (p u : seq T -> T -> R) (ks : seq T) : R :=
  let: (ratio, highest) := ratios p u (one N) (one N) [::] ks in over N ratio highest.

(** The coin of the whole block has its plain ratio, every other coin is that of hierarchical speculative decoding. *)
Definition released_heads (p u : seq T -> T -> R) (ks later : seq T) : R :=
  if later is [::] then minimum N (ratios p u (one N) (one N) [::] ks).1 (one N)
  else hierarchical_heads N V (capped_ratio p u ks) (p ks) (u ks).

Definition released_owed (p u : seq T -> T -> R) (ks later : seq T) : T -> R :=
  if later is [::] then p ks else excess_law N V (weighted N (capped_ratio p u ks) (p ks)) (u ks).

Definition hierarchical_released_judge State (p : seq T -> T -> R) (q : State -> seq T -> seq T -> T -> R)
    (s : State) (c ds : seq T) : dist R (seq T * T * nat) :=
  let p' ks := p (c ++ ks) in
  something_stays N (longest N V (released_heads p' (q s c)) (released_owed p' (q s c)) [::] ds).

(** ** REST: every path draws its own tokens; the path that is matched furthest wins, the first of several. *)
Fixpoint match_path (p : seq T -> T -> R) (c ks path : seq T) : dist R (seq T) :=
  if path is z :: path' then
    bind N (draw N V (p (c ++ ks))) (fun x => if x == z then match_path p c (rcons ks z) path' else ret N ks)
  else ret N ks.

Definition longer (best matched : seq T) : seq T := if (size best < size matched)%N then matched else best.

Fixpoint match_paths (p : seq T -> T -> R) (c : seq T) (paths : seq (seq T)) (best : seq T) : dist R (seq T) :=
  if paths is path :: paths' then
    bind N (match_path p c [::] path) (fun matched => match_paths p c paths' (longer best matched))
  else ret N best.

Definition rest_released_round State (p : seq T -> T -> R) (paths : nat -> seq T -> seq (seq T)) (s : State) n (c : seq T) :
    dist R (State * (seq T * T * nat)) :=
  bind N (match_paths p c (paths n c) [::]) (fun best =>
  bind N (draw N V (p (c ++ best))) (fun x => ret N (s, (best, x, size best)))).

(** ** FLy: two draws at every place; a draft is met if one of them is the draft. *)
Definition two_draws (r : T -> R) (d : T) : dist R (T * bool) :=
  bind N (draw N V r) (fun z =>
    if z == d then ret N (z, true) else bind N (draw N V r) (fun z' => ret N (z, z' == d))).

Fixpoint mark (p : seq T -> T -> R) (c ks ds : seq T) : dist R (seq (T * bool)) :=
  if ds is d :: ds' then
    bind N (two_draws (p (c ++ ks)) d) (fun zm =>
    bind N (mark p c (rcons ks d) ds') (fun l => ret N (zm :: l)))
  else ret N [::].

(** The first place that is neither met nor [excused]; that may depend on the drafts behind it. *)
Definition first_miss (excused : seq bool -> nat -> bool) (met : seq bool) : nat :=
  find (fun i => ~~ (nth false met i || excused met i)) (iota 0 (size met)).

Definition fly_judge State (p : seq T -> T -> R) (excused : seq T -> seq T -> seq bool -> nat -> bool) (s : State)
    (c ds : seq T) : dist R (seq T * T * nat) :=
  bind N (mark p c [::] ds) (fun l =>
    let i := first_miss (excused c ds) (map snd l) in
    if drop i l is (z, _) :: _ then ret N (take i ds, z, i)
    else bind N (draw N V (p (c ++ ds))) (fun x => ret N (ds, x, size ds))).

(** ** BiLD: everything is an argmax.  [small] and [large] are the argmaxes, [unsure] stops the small model, [unlikely]
    is asked of its tokens. *)
Variables (eos : seq T) (small large : seq T -> T) (unsure : seq T -> bool) (unlikely : seq T -> T -> bool).

Definition ends (ds : seq T) : bool := if ds is d :: ds' then last d ds' \in eos else false.

Fixpoint confident most (c ds : seq T) : seq T :=
  if most is most'.+1 then
    if ends ds || unsure (c ++ ds) then ds else confident most' c (rcons ds (small (c ++ ds)))
  else ds.

Fixpoint looked_at (c ks ds : seq T) : nat * bool :=
  if ds is d :: ds' then
    if unlikely (c ++ ks) d then
      if large (c ++ ks) == d then (size (ks ++ ds), false) else (size ks, true)
    else looked_at c (rcons ks d) ds'
  else (size ks, false).

(** A round that is decided by its state, which says whether the large model keeps its turn. *)
Definition bild_step gamma (again : bool) n (c : seq T) : bool * (seq T * T * nat) :=
  let ds := if again then [::] else confident (minn gamma n) c [::] in
  let: (kept, back) := looked_at c [::] ds in
  let answered := (back, (take kept ds, large (c ++ take kept ds), kept)) in
  if ds is d :: ds' then
    if (size ds == n) || ends ds then (false, (belast d ds', last d ds', size ds)) else answered
  else answered.

(** The text of rounds that draw nothing. *)
Fixpoint text_of_steps State (step : State -> nat -> seq T -> State * (seq T * T * nat)) slack fuel n (s : State) (c : seq T) : seq T :=
  if n is 0%N then [::] else
  if fuel is fuel'.+1 then
    let: (s', (kept, last, _)) := step s (slack + n)%N c in
    let: (new, remaining) := commit eos (rcons kept last) n in
    new ++ text_of_steps step slack fuel' remaining s' (c ++ new)
  else [::].

End Programs.

Section Blocks.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (State : Type) (plan : State -> seq T -> nat) (p : seq T -> T -> R) (q : State -> seq T -> seq T -> T -> R).
Variable next : State -> seq T -> seq T -> seq T * T * nat -> State.
Local Notation always := (fun _ _ _ => true).

(** ** Hierarchical speculative decoding as released: every block of q, weighted; of it the prefix of i drafts with its
    own coin, times the tails of all longer ones. *)
Theorem hierarchical_released_law s n c K :
  let p' ks := p (c ++ ks) in
  let heads := released_heads N V p' (q s c) in
  E (block_round N V q plan always (hierarchical_released_judge N V p q) next s n c) K
  = \sum_(t : (minn (plan s c) n.-1).-tuple T) block_mass N q s c [::] t *
      \sum_(i < (size t).+1) tails_behind heads (take i t) (drop i t) * heads (take i t) (drop i t)
        * \sum_x released_owed N V p' (q s c) (take i t) (drop i t) x
            * K (next s c t (take i t, x, nat_of_ord i), (take i t, x, nat_of_ord i)).
Proof.
move=> p' heads; rewrite /block_round E_bind expected_over_blocks; apply: eq_bigr => t _; congr (_ * _).
rewrite E_bind E_something_stays longest_law mulr0 addr0; apply: eq_bigr => i _ /=; congr (_ * _).
by apply: eq_bigr => x _; rewrite E_ret add0n.
Qed.

(** ** FLy.
    Whether a place is met is a coin of its own, 1 - (1 - p(d))^2; what replaces a missed draft is drawn from p without
    the draft. *)
Definition missed_law (r : T -> R) (d : T) : T -> R := if r d < 1 then (fun z => if z == d then 0 else r z / (1 - r d)) else r.
Definition met_law (r : T -> R) (d : T) : T -> R := fun z => (if z == d then 1 else r z) / (2%:R - r d).
Definition met_mass (r : T -> R) (d : T) : R := 1 - (1 - r d) ^+ 2.

Arguments met_law : simpl never.
Arguments missed_law : simpl never.

Lemma pmf_le1 (r : T -> R) d : pmf r -> r d <= 1.
Proof. by move=> [r0 <-]; rewrite (bigD1 d) //= ler_addl sumr_ge0. Qed.

Lemma rest_mass (r : T -> R) d : pmf r -> \sum_(z | z != d) r z = 1 - r d.
Proof. by move=> [_ r1]; rewrite -r1 [in RHS](bigD1 d) //= addrC addKr. Qed.

Lemma two_minus (r : T -> R) d : pmf r -> 0 < 2%:R - r d.
Proof.
move=> Hr; rewrite subr_gt0; apply: le_lt_trans (pmf_le1 d Hr) _.
by rewrite ltr1n.
Qed.

Lemma pmf_missed_law r d : pmf r -> pmf (missed_law r d).
Proof.
move=> Hr; rewrite /missed_law; case: ifP => // lt1; have pos : 0 < 1 - r d by rewrite subr_gt0.
split=> [z|]; first by case: ifP => // _; rewrite divr_ge0 ?Hr.1 ?ltW.
rewrite (bigD1 d) //= eqxx add0r (eq_bigr (fun z => r z / (1 - r d))) => [|z /negbTE->] //.
by rewrite -mulr_suml rest_mass // divff // gt_eqF.
Qed.

Lemma pmf_met_law r d : pmf r -> pmf (met_law r d).
Proof.
move=> Hr; have pos := two_minus d Hr; split=> [z|].
  by rewrite divr_ge0 ?(ltW pos) //; case: ifP => _; rewrite ?ler01 ?Hr.1.
rewrite -mulr_suml (bigD1 d) //= eqxx (eq_bigr r) => [|z /negbTE->] //.
by rewrite rest_mass // addrA divff // gt_eqF.
Qed.

Lemma E_two_draws r d K : pmf r ->
  E (two_draws N V r d) K = met_mass r d * (\sum_z met_law r d z * K (z, true)) + (1 - met_mass r d) * (\sum_z missed_law r d z * K (z, false)).
Proof.
move=> Hr; rewrite E_bind E_token !mulr_sumr -big_split; apply: eq_bigr => z _ /=.
have two0 : 2%:R - r d != 0 by rewrite gt_eqF // two_minus.
have massE : met_mass r d = r d * (2%:R - r d).
  rewrite /met_mass -[X in X - _](expr1n _ 2) subr_sqr; congr (_ * _); first by rewrite opprB addrCA subrr addr0.
  by rewrite addrA -(natrD _ 1 1).
have missE : 1 - met_mass r d = (1 - r d) ^+ 2 by rewrite /met_mass opprB addrC subrK.
have met : met_mass r d * met_law r d z = r d * (if z == d then 1 else r z).
  by rewrite massE /met_law -mulrA [_ * (_ / _)]mulrCA divff // mulr1.
have missed : (1 - met_mass r d) * missed_law r d z = (1 - r d) * (if z == d then 0 else r z).
  rewrite missE /missed_law; case: ltP => [lt1 | ge1].
    case: ifP => _; first by rewrite !mulr0.
    by rewrite expr2 -mulrA [_ * (_ / _)]mulrCA divff ?mulr1 // gt_eqF // subr_gt0.
  have -> : 1 - r d = 0 by apply/eqP; rewrite subr_eq0 eq_le ge1 pmf_le1.
  by rewrite expr2 !mul0r.
rewrite [met_mass r d * (_ * K _)]mulrA [(1 - met_mass r d) * (_ * K _)]mulrA met missed; case: eqP => [-> | /eqP zd]; first by rewrite E_ret mulr1 mulr0 mul0r addr0.
rewrite E_bind E_token (bigD1 d) //= E_ret eqxx (eq_bigr (fun z' => r z' * K (z, false))) => [|z' /negbTE zd']; last first.
  by rewrite E_ret zd'.
by rewrite -mulr_suml rest_mass // mulrDr !mulrA (mulrC (r z) (r d)) (mulrC (r z) (1 - r d)).
Qed.

(** The marks of a block: coins first, then what was drawn, given the coins. *)
Fixpoint coin_masses (c ks ds : seq T) (met : seq bool) : R :=
  match ds, met with
  | d :: ds', m :: met' =>
    (if m then met_mass (p (c ++ ks)) d else 1 - met_mass (p (c ++ ks)) d) * coin_masses c (rcons ks d) ds' met'
  | _, _ => 1
  end.

Fixpoint laws_of_draws (c ks ds : seq T) (met : seq bool) : seq (T -> R) :=
  match ds, met with
  | d :: ds', m :: met' =>
    (if m then met_law (p (c ++ ks)) d else missed_law (p (c ++ ks)) d) :: laws_of_draws c (rcons ks d) ds' met'
  | _, _ => [::]
  end.

Hypothesis Hp : forall c, pmf (p c).

Lemma E_mark c : forall ds ks K,
  E (mark N V p c ks ds) K
  = \sum_(met : (size ds).-tuple bool) coin_masses c ks ds met
      * E (draw_all N V (laws_of_draws c ks ds met)) (fun zs => K (zip zs met)).
Proof.
elim=> [|d ds IH] ks K.
  by rewrite (sum_no_tuple (fun met => coin_masses c ks [::] met * E (draw_all N V (laws_of_draws c ks [::] met)) (fun zs => K (zip zs met)))) /= !E_ret mul1r.
rewrite (sum_tuples _ (fun met => coin_masses c ks (d :: ds) met * E (draw_all N V (laws_of_draws c ks (d :: ds) met)) (fun zs => K (zip zs met)))).
rewrite big_bool /= E_bind (E_ext _ (L := fun zm => E (mark N V p c (rcons ks d) ds) (fun l => K (zm :: l)))); last first.
  by move=> zm; rewrite E_bind; apply: E_ext => l; rewrite E_ret.
rewrite E_two_draws //.
have part m (r : T -> R) (M : R) : M * (\sum_z r z * E (mark N V p c (rcons ks d) ds) (fun l => K ((z, m) :: l)))
    = \sum_(met : (size ds).-tuple bool) M * coin_masses c (rcons ks d) ds met
        * E (draw_all N V (r :: laws_of_draws c (rcons ks d) ds met)) (fun zs => K (zip zs (m :: met))).
  under eq_bigr do rewrite IH mulr_sumr.
  rewrite exchange_big mulr_sumr; apply: eq_bigr => met _; rewrite E_draw_all_cons -mulrA; congr (_ * _).
  by rewrite mulr_sumr; apply: eq_bigr => z _; rewrite mulrCA.
by rewrite !part.
Qed.

Lemma all_pmfs_laws c : forall ds ks met, all_pmfs (laws_of_draws c ks ds met).
Proof.
elim=> [|d ds IH] ks [|m met] //=; split; last exact: IH.
by case: m; [apply: pmf_met_law | apply: pmf_missed_law].
Qed.

Lemma drop_laws c : forall ds ks met i d ds' m met', drop i ds = d :: ds' -> drop i met = m :: met' ->
  exists rest, drop i (laws_of_draws c ks ds met)
    = (if m then met_law (p (c ++ ks ++ take i ds)) d else missed_law (p (c ++ ks ++ take i ds)) d) :: rest.
Proof.
elim=> [|d0 ds IH] ks [|m0 met] [|i] d ds' m met' //=.
  by case=> -> _ [-> _]; eexists; rewrite cats0.
by move=> /(IH (rcons ks d0)) at_i /at_i[rest ->]; exists rest; rewrite cat_rcons.
Qed.

Lemma drop_zip A B i (s : seq A) (t : seq B) : drop i (zip s t) = zip (drop i s) (drop i t).
Proof. by elim: s t i => [|x s IH] [|y t] [|i] //=; case: (drop i _). Qed.

Lemma first_miss_misses (excused : seq bool -> nat -> bool) met m rest :
  drop (first_miss excused met) met = m :: rest -> m = false.
Proof.
move=> dropE; have lt : (first_miss excused met < size met)%N.
  by rewrite ltnNge; apply/negP => ge; move: dropE; rewrite drop_oversize.
have found : has (fun i => ~~ (nth false met i || excused met i)) (iota 0 (size met)).
  by rewrite has_find size_iota.
have := nth_find 0%N found; rewrite nth_iota // add0n negb_or => /andP[].
by rewrite -[X in nth _ _ X]addn0 -nth_drop dropE /= => /negbTE.
Qed.

(** Every pattern of met and missed places, weighted: the drafts before the first miss that is not excused stay. *)
Theorem fly_law (excused : seq T -> seq T -> seq bool -> nat -> bool) (s : State) c ds K :
  E (fly_judge N V p excused s c ds) K
  = \sum_(met : (size ds).-tuple bool) coin_masses c [::] ds met *
      (let i := first_miss (excused c ds) met in
       if drop i ds is d :: _ then \sum_x missed_law (p (c ++ take i ds)) d x * K (take i ds, x, i)
       else \sum_x p (c ++ ds) x * K (ds, x, size ds)).
Proof.
rewrite E_bind E_mark; apply: eq_bigr => met _; congr (_ * _).
cbv zeta; set laws := laws_of_draws c [::] ds met; set i := first_miss _ _.
have sizes : size met = size ds by rewrite size_tuple.
have size_laws : forall ds ks (m : seq bool), size m = size ds -> size (laws_of_draws c ks ds m) = size ds.
  by elim=> [|d ds' IH] ks [|m m'] //= [e]; rewrite IH.
transitivity (E (draw_all N V laws) (fun zs => if drop i zs is z :: _ then K (take i ds, z, i) else \sum_x p (c ++ ds) x * K (ds, x, size ds))).
  apply: draw_all_size => zs; rewrite size_laws // => szs.
  have -> : map snd (zip zs met) = met by rewrite -/unzip2 unzip2_zip // szs sizes.
  rewrite /= -/i drop_zip; case e: (drop i zs) => [|z zs']; case e': (drop i met) => [|m met'] /=; last by rewrite E_ret.
  - by rewrite E_bind E_token; apply: eq_bigr => x _; rewrite E_ret.
  - by move: (congr1 size e) (congr1 size e'); rewrite !size_drop szs sizes => ->.
  - by move: (congr1 size e) (congr1 size e'); rewrite !size_drop szs sizes => ->.
rewrite (E_draw_all_at _ _ (all_pmfs_laws c ds [::] met)) -/laws.
case e: (drop i ds) => [|d ds'].
  have -> : drop i laws = [::] by apply: drop_oversize; rewrite size_laws // -subn_eq0 -size_drop e.
  by [].
case e': (drop i met) => [|m met'].
  by move: (congr1 size e) (congr1 size e'); rewrite !size_drop sizes => ->.
have [rest ->] := drop_laws c [::] e e'.
by rewrite (first_miss_misses e').
Qed.

End Blocks.

Section Paths.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (p : seq T -> T -> R) (c : seq T).
Hypothesis Hp : forall c, pmf (p c).

(** How far one path is matched: its first i tokens, and not the next. *)
Definition matched_mass (ks path : seq T) (i : nat) : R :=
  block_mass N (fun _ c ds => p (c ++ ds)) tt c ks (take i path)
  * (if drop i path is d :: _ then 1 - p (c ++ ks ++ take i path) d else 1).

Lemma E_match_path K : forall path ks,
  E (match_path N V p c ks path) K = \sum_(i < (size path).+1) matched_mass ks path i * K (ks ++ take i path).
Proof.
elim=> [|z path IH] ks.
  by rewrite big_ord_recl big_ord0 /matched_mass /= cats0 !mulr1 mul1r addr0 E_ret.
rewrite /= E_bind E_token (bigD1 z) //= eqxx IH [in RHS]big_ord_recl /= cats0 addrC; congr (_ + _).
  rewrite (eq_bigr (fun x => p (c ++ ks) x * K ks)) => [|x /negbTE->]; last by rewrite E_ret.
  by rewrite -mulr_suml rest_mass // /matched_mass /= cats0 mul1r.
rewrite mulr_sumr; apply: eq_bigr => i _.
by rewrite /matched_mass /= !cat_rcons !mulrA.
Qed.

(** The sum over how far each of the paths is matched, independently; [best] is the longest so far. *)
Fixpoint over_paths (paths : seq (seq T)) (best : seq T) (K : seq T -> R) : R :=
  if paths is path :: paths' then
    \sum_(i < (size path).+1) matched_mass [::] path i * over_paths paths' (longer best (take i path)) K
  else K best.

(** ** REST as released: the lengths of all paths are independent, and a token of p follows the longest. *)
Theorem rest_released_law State (paths : nat -> seq T -> seq (seq T)) (s : State) n K :
  E (rest_released_round N V p paths s n c) K
  = over_paths (paths n c) [::] (fun best => \sum_x p (c ++ best) x * K (s, (best, x, size best))).
Proof.
rewrite /rest_released_round E_bind.
rewrite (E_ext _ (L := fun best => \sum_x p (c ++ best) x * K (s, (best, x, size best)))) => [|best]; last first.
  by rewrite E_bind E_token; apply: eq_bigr => x _; rewrite E_ret.
elim: (paths n c) [::] => [|path later IH] best /=; first by rewrite E_ret.
by rewrite E_bind E_match_path; apply: eq_bigr => i _; rewrite IH.
Qed.
End Paths.

Section Cascade.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (p q1 q2 : seq T -> T -> R).
Hypotheses (H1 : forall c, pmf (q1 c)) (H2 : forall c, pmf (q2 c)).

(** ** TriForce as released: an inner round of one draft whose rejection draws from q' itself. *)
Definition released_inner : unit -> nat -> seq T -> dist R (unit * (seq T * T * nat)) :=
  chain_round N V (fun _ _ => 1%N) (fun _ _ _ => true) (fun _ c ds => q2 (c ++ ds))
    (fun _ c ks => resample_rule N V (q1 (c ++ ks)) (q2 (c ++ ks))) (target_bonus q1) (fun s _ _ _ => s).

(** Tokens that are nearly drawn from q': min(q', q'') of an accepted inner draft, TV(q', q'') q' of a rejected one, and
    q' itself behind an accepted one. *)
Fixpoint nearly g (was_accepted : bool) (c : seq T) (K : seq T -> R) : R :=
  if g is g'.+1 then
    if was_accepted then \sum_x q1 c x * nearly g' false (rcons c x) (fun t => K (x :: t))
    else \sum_x Num.min (q2 c x) (q1 c x) * nearly g' true (rcons c x) (fun t => K (x :: t))
       + \sum_x (\sum_y excess N (q1 c) (q2 c) y) * q1 c x * nearly g' false (rcons c x) (fun t => K (x :: t))
  else K [::].

Lemma E_released_inner n c K : (1 < n)%N ->
  E (released_inner tt n c) K
  = \sum_d Num.min (q2 c d) (q1 c d) * (\sum_x q1 (rcons c d) x * K (tt, ([:: d], x, 1%N)))
    + \sum_x (\sum_y excess N (q1 c) (q2 c) y) * q1 c x * K (tt, ([::], x, 0%N)).
Proof.
case: n => [|[|n]] // _; rewrite /released_inner /chain_round (_ : minn 1 n.+2.-1 = 1%N); last exact/minn_idPl.
pose u (_ : unit) c ds := q2 (c ++ ds); pose rule (_ : unit) c ks := resample_rule N V (q1 (c ++ ks)) (q2 (c ++ ks)).
transitivity (E (bind N (propose N V (fun _ _ _ => true) u 1 tt c [::]) (judge N rule (target_bonus q1) tt c [::])) (fun r => K (tt, r))).
  rewrite [LHS]E_bind [RHS]E_bind; apply: E_ext => ds; rewrite [LHS]E_bind; apply: E_ext => r.
  by rewrite E_ret.
rewrite (draft_first_is_token_by_token (fun _ _ _ => true) (q := u)) => [|s' c' ds]; last exact: H2.
rewrite law_of_one_position //; have [kept repl] := resample_law (H1 c) (H2 c).
congr (_ + _); apply: eq_bigr => x _; rewrite /u /rule !cats0.
  by rewrite kept /= E_bind E_token cats1; congr (_ * _); apply: eq_bigr => y _; rewrite E_ret.
by rewrite repl.
Qed.

(** The law of the tokens that the inner rounds draft. *)
Theorem triforce_released_drafts_law n c : forall fuel K, (n <= fuel)%N ->
  E (decode N [::] released_inner 1 fuel n tt c) (fun rounds => K (text_of rounds)) = nearly n false c K.
Proof.
elim: {n}n.+1 {-2}n (ltnSn n) c => [//|m IHm] [|n] nm c [|fuel] K // nf; try by rewrite /= E_ret.
have after n' c' K' : (n' <= n)%N -> E (decode N [::] released_inner 1 fuel n' tt c') (fun rounds => K' (text_of rounds)) = nearly n' false c' K'.
  by move=> n'n; apply: IHm; [apply: leq_ltn_trans n'n _; rewrite -ltnS | apply: leq_trans n'n _; rewrite -ltnS].
have commit_all (b : seq T) k : commit [::] b k = (take k b, (k - size (take k b))%N).
  have cut : forall l : seq T, until_end [::] l = l by elim=> [|x l IH] //=; rewrite IH.
  by rewrite /commit; cbv zeta; rewrite cut (_ : has _ _ = false) //; elim: (take k b).
have block fuel' n' c' b k' : E (bind N (decode N [::] released_inner 1 fuel' n' tt c') (fun rounds => ret N ((b, k') :: rounds))) (fun rounds => K (text_of rounds))
   = E (decode N [::] released_inner 1 fuel' n' tt c') (fun rounds => K (b ++ text_of rounds)).
  by rewrite E_bind; apply: E_ext => rounds; rewrite E_ret.
rewrite [LHS]E_bind E_released_inner // [nearly _ _ _ _]/=; congr (_ + _); apply: eq_bigr => d _; last first.
  by rewrite commit_all /= block subSS subn0 (after n (c ++ [:: d]) (fun t => K (d :: t))) // cats1.
congr (_ * _); case: n nm nf after => [|n] nm nf after.
  rewrite (eq_bigr (fun x => q1 (rcons c d) x * K [:: d])) => [|x _]; last first.
    by rewrite commit_all /= block (after 0%N (c ++ [:: d]) (fun t => K (d :: t))).
  by rewrite -mulr_suml (H1 _).2 mul1r.
apply: eq_bigr => x _; rewrite commit_all /= block (_ : (n.+2 - 2)%N = n); last by rewrite !subSS subn0.
by rewrite (after n (c ++ [:: d; x]) (fun t => K (d :: x :: t))) // -cat_rcons cats1.
Qed.

(** ** TriForce as released.
    A round drafts these tokens and judges them as if they were drawn from q'; [judged_block_law] is the law of the
    judgement of each block. *)
Theorem triforce_released_law (State : Type) (plan : State -> seq T -> nat) (next : State -> seq T -> seq T -> seq T * T * nat -> State)
    (s : State) n c K :
  let judged ds := judge N (fun _ c ks => speculative_rule N V (p (c ++ ks)) (q1 (c ++ ks))) (target_bonus p) s c [::] ds in
  E (cascade_round N plan released_inner (fun _ => tt) 1 (fun s c ds => judged ds) next s n c) K
  = nearly (minn (plan s c) n.-1) false c (fun ds => E (judged ds) (fun result => K (next s c ds result, result))).
Proof.
move=> judged; rewrite /cascade_round E_bind /decoded_text E_bind -(triforce_released_drafts_law _ _ (leqnn _)).
by apply: E_ext => rounds; rewrite E_ret E_bind; apply: E_ext => result; rewrite E_ret.
Qed.
End Cascade.

Section Steps.
Variable R : realFieldType.
Variable T : eqType.
Local Notation N := (field_numbers R).

(** ** Rounds that draw nothing write one text. *)
Theorem deterministic_rounds_law State eos (step : State -> nat -> seq T -> State * (seq T * T * nat)) slack : forall fuel n s c (f : seq T -> R),
  E (decode N eos (fun s n c => ret N (step s n c)) slack fuel n s c) (fun rounds => f (text_of rounds))
  = f (text_of_steps eos step slack fuel n s c).
Proof.
elim=> [|fuel IH] [|n] s c f; try by rewrite /= E_ret.
rewrite /= E_bind E_ret.
case: (step s (slack + n.+1)%N c) => s' [[kept last'] a].
set new := until_end _ _; set remaining := if _ then _ else _.
rewrite E_bind -(IH remaining s' (c ++ new) (fun t => f (new ++ t))).
by apply: E_ext => rounds; rewrite E_ret.
Qed.

(** ** BiLD as released: the point mass on the text that its turns write, the first of them the large model's. *)
Corollary bild_released_law eos small large unsure unlikely gamma n c (f : seq T -> R) :
  let step := bild_step eos small large unsure unlikely gamma in
  E (decoded_text N eos (fun s n c => ret N (step s n c)) 0 n true c) f = f (text_of_steps eos step 0 n n true c).
Proof.
move=> step; rewrite -(deterministic_rounds_law eos step 0 n n true c f) /decoded_text E_bind.
by apply: E_ext => rounds; rewrite E_ret.
Qed.
End Steps.
