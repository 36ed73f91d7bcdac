(** * Watermarks with speculation: keys reweight the pmfs, and average out.

    A key is drawn for every place.  Given the key a draft is drawn from the reweighted drafter; the rule that judges it may
    read the key.  What a token is given its key is not the target; averaged over keys it is. *)
From Lossless Require Import Probability OnePosition Texts Chain Lengths.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).
Variables (Key : eqType) (keys : seq Key) (law_of_key : Key -> R) (reweighted : Key -> (T -> R) -> T -> R).

(** A token drawn by a key of its own. *)
Definition drawn_by_key (r : T -> R) : dist R T :=
  bind N (draw N keys law_of_key) (fun k => draw N V (reweighted k r)).

Variables (State : Type) (plan : State -> seq T -> nat) (p q : seq T -> T -> R).
Variable rule : seq T -> Key -> T -> dist R (option T).     (* the text so far, the key of the draft, and the draft *)

(** [g] drafts behind the text [c], each with its key. *)
Fixpoint propose_by_keys g (c : seq T) : dist R (seq (Key * T)) :=
  if g is g'.+1 then
    bind N (draw N keys law_of_key) (fun k =>
    bind N (draw N V (reweighted k (q c))) (fun d =>
    bind N (propose_by_keys g' (rcons c d)) (fun later => ret N ((k, d) :: later))))
  else ret N [::].

Fixpoint judge_by_keys (c ks : seq T) (ds : seq (Key * T)) : dist R (seq T * T * nat) :=
  if ds is (k, d) :: ds' then
    bind N (rule (c ++ ks) k d) (fun o => if o is Some x then ret N (ks, x, size ks) else judge_by_keys c (rcons ks d) ds')
  else bind N (drawn_by_key (p (c ++ ks))) (fun x => ret N (ks, x, size ks)).

Definition keyed_round (s : State) n (c : seq T) : dist R (State * (seq T * T * nat)) :=
  bind N (propose_by_keys (minn (plan s c) n.-1) c) (fun ds =>
  bind N (judge_by_keys c [::] ds) (fun result => ret N (s, result))).

(** Strength: the draft against the target that the same key reweights. *)
Definition strength_rule (c : seq T) (k : Key) (d : T) : dist R (option T) :=
  speculative_rule N V (reweighted k (p c)) (reweighted k (q c)) d.

(** Efficiency: min(1, p/q) as without keys; the replacement is drawn by a key of its own. *)
Definition efficiency_rule (c : seq T) (k : Key) (d : T) : dist R (option T) :=
  bind N (flip N (accept_probability N (p c) (q c) d)) (fun kept =>
    if kept then ret N None else bind N (drawn_by_key (excess_law N V (p c) (q c))) (fun x => ret N (Some x))).

(** A reweighting of two keys: the tokens in rising or in falling order, the second half of the mass doubled. *)
Definition second_half (w : R) : R := positive_part N (minus N (plus N w w) (one N)).

Definition in_order (order : seq T) (r : T -> R) (x : T) : R :=
  let before := total N (take (index x order) order) r in
  minus N (second_half (plus N before (r x))) (second_half before).

Definition two_orders (rising : bool) : (T -> R) -> T -> R := in_order (if rising then V else rev V).

End Programs.

Section Theorems.
Variables (R : realFieldType) (T Key : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Local Notation keys := (vocabulary Key).
Variables (law_of_key : Key -> R) (reweighted : Key -> (T -> R) -> T -> R).

(** The reweighted pmfs are pmfs, and their average over keys is the pmf itself. *)
Hypothesis Hkey : pmf law_of_key.
Hypothesis Hre : forall k r, pmf r -> pmf (reweighted k r).
Hypothesis unbiased : forall r x, pmf r -> \sum_k law_of_key k * reweighted k r x = r x.
Variables (State : Type) (plan : State -> seq T -> nat) (p q : seq T -> T -> R).
Hypotheses (Hp : forall c, pmf (p c)) (Hq : forall c, pmf (q c)).

(** A token drawn by a key has the law of the pmf. *)
Theorem drawn_by_key_law (r : T -> R) : pmf r -> same_law (drawn_by_key N V keys law_of_key reweighted r) (draw N V r).
Proof.
move=> Hr K; rewrite E_bind !E_token (eq_bigr (fun k => \sum_x law_of_key k * reweighted k r x * K x)) => [|k _].
  by rewrite exchange_big; apply: eq_bigr => x _ /=; rewrite -mulr_suml unbiased.
by rewrite E_token mulr_sumr; apply: eq_bigr => x _; rewrite mulrA.
Qed.

(** A rule is exact on average over keys: given the text, the token that comes out has the law p. *)
Definition exact_over_keys (rule : seq T -> Key -> T -> dist R (option T)) := forall c F,
  \sum_k law_of_key k * emitted (reweighted k (q c)) (rule c k) F = \sum_x p c x * F x.

Local Notation propose := (propose_by_keys N V keys law_of_key reweighted q).

Lemma E_propose_by_keys g c K :
  E (propose g.+1 c) K
  = \sum_k law_of_key k * \sum_d reweighted k (q c) d * E (propose g (rcons c d)) (fun later => K ((k, d) :: later)).
Proof.
rewrite /= E_bind E_token; apply: eq_bigr => k _; congr (_ * _); rewrite E_bind E_token; apply: eq_bigr => d _.
by rewrite E_bind; congr (_ * _); apply: E_ext => later; rewrite E_ret.
Qed.

Lemma proper_propose_by_keys g : forall c, proper (propose g c).
Proof.
elim: g => [|g IH] c a; first by rewrite /= E_ret.
rewrite E_propose_by_keys (eq_bigr (fun k => law_of_key k * a)) => [|k _].
  by rewrite -mulr_suml Hkey.2 mul1r.
congr (_ * _); rewrite (eq_bigr (fun d => reweighted k (q c) d * a)) => [|d _]; last by rewrite IH.
by rewrite -mulr_suml (Hre k (Hq c)).2 mul1r.
Qed.

Section Rule.
Variable rule : seq T -> Key -> T -> dist R (option T).
Hypothesis exact : exact_over_keys rule.
Local Notation judge := (judge_by_keys N V keys law_of_key reweighted p rule).

Lemma keyed_block n c f : forall g ks, (size ks + g < n)%N ->
  E (propose g (c ++ ks)) (fun ds => E (judge c ks ds) (fun result => behind p n c f (rcons result.1.1 result.1.2)))
  = behind p n c f ks.
Proof.
elim=> [|g IH] ks gn.
  rewrite addn0 in gn; rewrite /= E_ret E_bind drawn_by_key_law // E_token -(target_behind _ _ _ gn).
  by apply: eq_bigr => x _; rewrite E_ret.
have kn : (size ks < n)%N by apply: leq_ltn_trans gn; rewrite leq_addr.
rewrite E_propose_by_keys -(target_behind _ _ _ kn) -(exact (c ++ ks) (fun x => behind p n c f (rcons ks x))).
apply: eq_bigr => k _; congr (_ * _); apply: eq_bigr => d _; congr (_ * _).
rewrite rcons_cat /= (E_ext _ (fun later => E_bind _ _ _)) E_exchange; apply: E_ext => -[x|] /=.
  by rewrite E_ret proper_propose_by_keys.
by rewrite IH // size_rcons addSnnS.
Qed.

(** ** Watermarked rounds are lossless on average over keys, for every rule that is exact on average over keys. *)
Theorem keyed_lossless eos slack n (s : State) c :
  same_law (decoded_text N eos (keyed_round N V keys law_of_key reweighted plan p q rule) slack n s c)
           (target_alone N V eos p n c).
Proof.
apply: decoded_text_law => // s' [//|m] c' f K _ target; rewrite /keyed_round E_bind -behind_nothing.
set g := minn _ _; have gn : (size ([::] : seq T) + g < m.+1)%N by rewrite ltnS geq_minr.
rewrite -(keyed_block c' f gn) cats0; apply: E_ext => ds; rewrite E_bind.
by apply: E_ext => -[[ks x] a]; rewrite E_ret target.
Qed.
End Rule.

(** Strength: exact given every key, for the reweighted target; on average for the target. *)
Lemma strength_exact : exact_over_keys (strength_rule N V reweighted p q).
Proof.
move=> c F; transitivity (\sum_k \sum_x law_of_key k * reweighted k (p c) x * F x).
  apply: eq_bigr => k _; rewrite (speculative_rule_exact (Hre k (Hp c)) (Hre k (Hq c))) mulr_sumr.
  by apply: eq_bigr => x _; rewrite mulrA.
by rewrite exchange_big; apply: eq_bigr => x _ /=; rewrite -mulr_suml unbiased.
Qed.

(** Efficiency: the key of a draft is not looked at, and a draft drawn by a key has the law q. *)
Lemma efficiency_exact : exact_over_keys (efficiency_rule N V keys law_of_key reweighted p q).
Proof.
move=> c F; rewrite -(speculative_rule_exact (Hp c) (Hq c) F).
pose G d := E (speculative_rule N V (p c) (q c) d) (fun o => F (odflt d o)).
transitivity (\sum_k law_of_key k * \sum_d reweighted k (q c) d * G d).
  apply: eq_bigr => k _; congr (_ * _); apply: eq_bigr => d _; congr (_ * _).
  rewrite /G E_accept_or_replace E_bind E_flip E_ret E_bind drawn_by_key_law; last exact: pmf_excess_law.
  by rewrite E_token; congr (_ + _ * _); apply: eq_bigr => x _; rewrite E_ret.
rewrite (eq_bigr (fun k => \sum_d law_of_key k * reweighted k (q c) d * G d)) => [|k _]; last first.
  by rewrite mulr_sumr; apply: eq_bigr => d _; rewrite mulrA.
by rewrite exchange_big; apply: eq_bigr => d _ /=; rewrite -mulr_suml unbiased.
Qed.

(** Both modes of watermarked speculative sampling, with any unbiased reweighting. *)
Corollary both_modes_lossless (strength : bool) eos slack n (s : State) c :
  let rule := if strength then strength_rule N V reweighted p q else efficiency_rule N V keys law_of_key reweighted p q in
  same_law (decoded_text N eos (keyed_round N V keys law_of_key reweighted plan p q rule) slack n s c)
           (target_alone N V eos p n c).
Proof. by case: strength; apply: keyed_lossless; [exact: strength_exact | exact: efficiency_exact]. Qed.

End Theorems.

Section TwoOrders.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variable r : T -> R.
Hypothesis Hr : pmf r.
Local Notation doubled := (second_half N).

Lemma doubledE w : doubled w = Num.max (w + w - 1) 0.
Proof. exact: positive_partE. Qed.

(** The second half of a mass, and that of the rest. *)
Lemma doubled_rest w : doubled w - doubled (1 - w) = w + w - 1.
Proof.
rewrite !doubledE (_ : 1 - w + (1 - w) - 1 = - (w + w - 1)); last first.
  by rewrite [LHS]addrAC [1 - w - 1]addrAC subrr add0r addrC opprB opprD addrA.
case: (leP (w + w - 1) 0) => h; first by rewrite (max_l (x := - _)) ?oppr_ge0 // sub0r opprK.
by rewrite (max_r (x := - _)) ?subr0 // oppr_le0 ltW.
Qed.

Lemma doubled_mono v w : v <= w -> doubled v <= doubled w.
Proof. by move=> vw; rewrite !doubledE le_maxl !le_maxr lexx !orbT andbT ler_sub // ler_add. Qed.

Lemma in_order_split s1 s2 x : x \notin s1 ->
  in_order N (s1 ++ x :: s2) r x = doubled (\sum_(y <- s1) r y + r x) - doubled (\sum_(y <- s1) r y).
Proof.
move=> x1; rewrite /in_order index_cat (negbTE x1) /= eqxx addn0 take_size_cat //.
by rewrite totalE.
Qed.

Lemma sum_in_order order : uniq order -> \sum_(x <- order) in_order N order r x = doubled (\sum_(x <- order) r x) - doubled 0.
Proof.
elim/last_ind: order => [|s y IH]; first by rewrite !big_nil subrr.
rewrite rcons_uniq -cats1 => /andP[ys us]; rewrite !big_cat !big_seq1 in_order_split //=.
rewrite (eq_big_seq (in_order N s r)) => [|x xs]; first by rewrite IH // addrC addrA subrK.
by rewrite /in_order index_cat xs takel_cat // ltnW // index_mem.
Qed.

Lemma pmf_in_order order : perm_eq order V -> pmf (in_order N order r).
Proof.
move=> same; have uo : uniq order by rewrite (perm_uniq same) enum_uniq.
split=> [x|].
  by rewrite /in_order /= subr_ge0 doubled_mono // ler_addl Hr.1.
rewrite -big_enum -(perm_big _ same) sum_in_order // (perm_big _ same) big_enum Hr.2 !doubledE.
by rewrite addrK addr0 sub0r max_l ?ler01 // max_r ?subr0 // oppr_le0 ler01.
Qed.

Lemma pmf_two_orders rising : pmf (two_orders N V rising r).
Proof. by apply: pmf_in_order; case: rising; rewrite ?perm_rev. Qed.

(** ** The reweighting of two orders is unbiased. *)
Theorem two_orders_unbiased x : \sum_k half R k * two_orders N V k r x = r x.
Proof.
have [s1 [s2 VE]] : exists s1 s2, V = s1 ++ x :: s2.
  have /splitPr[s1 s2] : x \in V by rewrite mem_enum.
  by exists s1, s2.
have : uniq (s1 ++ x :: s2) by rewrite -VE enum_uniq.
rewrite cat_uniq [has _ _]/= [uniq (_ :: _)]/= negb_or => /and3P[_ /andP[x1 _] /andP[x2 _]].
rewrite big_bool /two_orders VE rev_cat rev_cons cat_rcons !in_order_split ?mem_rev //.
have total1 : \sum_(y <- s1) r y + (r x + \sum_(y <- s2) r y) = 1.
  by rewrite -Hr.2 -[RHS]big_enum -[enum T]/V VE big_cat big_cons.
have -> : \sum_(y <- rev s2) r y = \sum_(y <- s2) r y by apply: perm_big; rewrite perm_rev.
set A := \sum_(y <- s1) r y in total1 *; set B := \sum_(y <- s2) r y in total1 *.
have BE : B = 1 - (A + r x) by rewrite -total1 addrA [_ + B]addrC addrK.
have BxE : B + r x = 1 - A by rewrite BE opprD addrA subrK.
rewrite BxE BE /half /= -mulrDr.
have swap a b a' b' : a - b + (b' - a') = (a - a') - (b - b') :> R.
  by rewrite opprB addrACA [RHS]addrACA [- a' - b]addrC.
rewrite swap !doubled_rest opprB addrA subrK addrACA addrAC subrr add0r -mulr2n -[r x *+ 2]mulr_natr mulrCA mulVf ?pnatr_eq0 //.
by rewrite mulr1.
Qed.
End TwoOrders.

(** ** Watermarked speculative sampling keeps the target, whether it keeps the watermark's strength or the drafts'
    efficiency: averaged over the keys of rising and falling order, texts have the law of the target alone. *)
Corollary watermarked_lossless (R : realFieldType) (T : finType) (State : Type) (plan : State -> seq T -> nat)
    (p q : seq T -> T -> R) (strength : bool) eos slack n (s : State) c :
  (forall c, pmf (p c)) -> (forall c, pmf (q c)) ->
  let N := field_numbers R in let V := vocabulary T in let keys := vocabulary bool_finType in
  let by_key := two_orders N V in
  let rule := if strength then strength_rule N V by_key p q else efficiency_rule N V keys (half R) by_key p q in
  same_law (decoded_text N eos (keyed_round N V keys (half R) by_key plan p q rule) slack n s c)
           (target_alone N V eos p n c).
Proof.
move=> Hp Hq; apply: both_modes_lossless => //; first exact: pmf_half.
  by move=> k r Hr; exact: pmf_two_orders.
by move=> r x Hr; exact: two_orders_unbiased.
Qed.
