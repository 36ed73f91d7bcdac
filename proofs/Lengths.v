(** * Length rules, cascades and requests as instances of the main theorem. *)
From Lossless Require Import Probability OnePosition Texts Chain Converse.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).

(** Draft on until [stop] says of a drafted token and its pmf that the draft ends there; the token is kept. *)
Definition until_stop State (q : State -> seq T -> seq T -> T -> R) (stop : State -> (T -> R) -> T -> bool)
    (s : State) (c ds : seq T) : bool :=
  if ds is x :: ds' then ~~ stop s (q s c (belast x ds')) (last x ds') else true.

(** Draft on while the pmf of the next draft is confident enough; the drafted token itself is not looked at. *)
Definition while_admitted State (q : State -> seq T -> seq T -> T -> R) (admits : State -> seq T -> seq T -> (T -> R) -> bool)
    (s : State) (c ds : seq T) : bool := admits s c ds (q s c ds).

(** Other requests, arrivals and departures change the state between two rounds, by any program. *)
Definition among_others State (others : State -> dist R State) (round : State -> nat -> seq T -> dist R (State * (seq T * T * nat)))
    (s : State) n (c : seq T) := bind N (others s) (fun s' => round s' n c).

(** Admission by a confidence that sees the drafted token: an unsure draft is dropped, and the target is sampled. *)
Definition dropped_token_rule (sure : T -> bool) (p q : T -> R) (d : T) : dist R (option T) :=
  if sure d then speculative_rule N V p q d else bind N (draw N V p) (fun x => ret N (Some x)).

(** A drafter that is itself accelerated: inner rounds decode [g] tokens, and those are the drafts. *)
Variables (State Inner : Type) (plan : State -> seq T -> nat).
Variable inner : Inner -> nat -> seq T -> dist R (Inner * (seq T * T * nat)).
Variables (start : State -> Inner) (slack : nat).
Variable judge_drafts : State -> seq T -> seq T -> dist R (seq T * T * nat).
Variable next : State -> seq T -> seq T -> seq T * T * nat -> State.
Definition cascade_round (s : State) n (c : seq T) : dist R (State * (seq T * T * nat)) :=
  bind N (decoded_text N [::] inner slack (minn (plan s c) n.-1) (start s) c) (fun ds =>
  bind N (judge_drafts s c ds) (fun result => ret N (next s c ds result, result))).

(** A drafter in two stages: [first] tokens of inner rounds, then tokens of a second drafter behind them. *)
Variables (V2 : seq T) (first : nat) (more2 : State -> seq T -> seq T -> bool) (q2 : State -> seq T -> seq T -> T -> R).
Definition staged_round (s : State) n (c : seq T) : dist R (State * (seq T * T * nat)) :=
  let m := minn (plan s c) n.-1 in
  bind N (decoded_text N [::] inner slack (minn first m) (start s) c) (fun ds1 =>
  bind N (propose N V2 more2 q2 (m - size ds1) s c ds1) (fun ds2 =>
  bind N (judge_drafts s c (ds1 ++ ds2)) (fun result => ret N (next s c (ds1 ++ ds2) result, result)))).

End Programs.

Section Theorems.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variable p : seq T -> T -> R.
Hypothesis Hp : forall c, pmf (p c).
Local Notation sd q := (fun s c ks => speculative_rule N V (p (c ++ ks)) (q s c ks)).

(** ** A fixed gamma. *)
Theorem constant_gamma_lossless (gamma : nat) (q : seq T -> T -> R) : (forall c, pmf (q c)) -> forall eos slack n c,
  same_law (decoded_text N eos (chain_round N V (fun (_ : unit) _ => gamma) (fun _ _ _ => true) (fun _ c ds => q (c ++ ds))
      (sd (fun _ c ds => q (c ++ ds))) (target_bonus p) (fun s _ _ _ => s)) slack n tt c)
    (target_alone N V eos p n c).
Proof. by move=> Hq eos slack n c; apply: speculative_sampling_lossless. Qed.

(** ** Every gamma that is planned from past rounds (dynamic k, bandits, adaptive thresholds): [gamma] reads the memory
    and the text, [learn] updates the memory from the drafts and the result of the round. *)
Theorem adaptive_gamma_lossless (Memory : Type) (gamma : Memory -> seq T -> nat)
    (learn : Memory -> seq T -> seq T -> seq T * T * nat -> Memory) (stop : Memory -> (T -> R) -> T -> bool)
    (q : Memory -> seq T -> T -> R) : (forall s c, pmf (q s c)) -> forall eos slack n s c,
  let u s c ds := q s (c ++ ds) in
  same_law (decoded_text N eos (chain_round N V gamma (until_stop u stop) u (sd u) (target_bonus p) learn) slack n s c)
    (target_alone N V eos p n c).
Proof. by move=> Hq eos slack n s c; apply: speculative_sampling_lossless. Qed.

(** ** EGAG: gamma follows a statistic of the drafter's first pmf of the round (its entropy), smoothed over the rounds.
    [statistic], [smooth] and [gamma] may be any functions. *)
Theorem egag_lossless (Value : Type) (statistic : (T -> R) -> Value) (smooth : option Value -> Value -> Value)
    (gamma : Value -> nat) (raw q : seq T -> T -> R) : (forall c, pmf (q c)) -> forall eos slack n s c,
  let value s c := smooth s (statistic (raw c)) in
  let u (_ : option Value) c ds := q (c ++ ds) in
  same_law (decoded_text N eos (chain_round N V (fun s c => gamma (value s c)) (fun _ _ _ => true) u (sd u)
      (target_bonus p) (fun s c _ _ => Some (value s c))) slack n s c)
    (target_alone N V eos p n c).
Proof. by move=> Hq eos slack n s c; apply: speculative_sampling_lossless. Qed.

(** ** Several requests, admission by a confidence that does not see the drafted token.
    Between two rounds of a request the others may do anything; how far it drafts may depend on the state that all of
    them share, and on the pmf of the next draft, but not on the drafted token.  The text of every request has the law
    of the target alone. *)
Theorem admission_lossless (State : Type) (others : State -> dist R State) (plan : State -> seq T -> nat)
    (admits : State -> seq T -> seq T -> (T -> R) -> bool) (q : State -> seq T -> seq T -> T -> R)
    (next : State -> seq T -> seq T -> seq T * T * nat -> State) :
  (forall s, proper (others s)) -> (forall s c ds, pmf (q s c ds)) -> forall eos slack n s c,
  same_law (decoded_text N eos (among_others N others (chain_round N V plan (while_admitted q admits) q (sd q)
      (target_bonus p) next)) slack n s c)
    (target_alone N V eos p n c).
Proof.
move=> Ho Hq eos slack n s c; apply: decoded_text_law => // s' m c' f K m0 target.
rewrite E_bind -[RHS](Ho s'); apply: E_ext => s''.
apply: chain_round_lossless => // s1 c1 ks; exact: speculative_rule_exact.
Qed.

Lemma sample_is_propose (State : Type) (q : seq T -> T -> R) g (s : State) c : forall ds K,
  E (sample q g (c ++ ds)) K = E (propose N V (fun _ _ _ => true) (fun _ c ds => q (c ++ ds)) g s c ds) K.
Proof.
elim: g => [|g IH] ds K; first by rewrite E_sample0.
by rewrite E_sampleS E_proposeS //; apply: eq_bigr => x _; rewrite rcons_cat IH.
Qed.

(** ** Cascades (TriForce): if the inner rounds are lossless for the drafter q, then tokens that they decode are drafts
    from q, and speculative sampling of them is lossless, wherever the inner rounds are cut. *)
Theorem cascade_lossless (State Inner : Type) (plan : State -> seq T -> nat)
    (inner : Inner -> nat -> seq T -> dist R (Inner * (seq T * T * nat))) (start : State -> Inner) inner_slack
    (q : seq T -> T -> R) (next : State -> seq T -> seq T -> seq T * T * nat -> State) :
  (forall c, pmf (q c)) -> lossless_round q inner -> forall eos slack n s c,
  same_law (decoded_text N eos (cascade_round N plan inner start inner_slack
      (fun s c ds => judge N (sd (fun _ c ds => q (c ++ ds))) (target_bonus p) s c [::] ds) next) slack n s c)
    (target_alone N V eos p n c).
Proof.
move=> Hq inner_lossless eos slack n s c; apply: decoded_text_law => // s' m c' f K m0 target.
rewrite /cascade_round E_bind (decoded_text_law Hq [::] inner_slack inner_lossless) -/(sample q _ c') -[c' in sample _ _ c']cats0.
rewrite (sample_is_propose q _ s').
pose u (_ : State) c ds := q (c ++ ds).
have := @chain_round_lossless _ _ State plan (fun _ _ _ => true) u (fun s c ds => Hq _) (sd u) (target_bonus p) next p.
move=> /(_ (fun s c ks => speculative_rule_exact (Hp _) (Hq _)) (fun c K => erefl) s' m c' f K m0 target).
by rewrite /chain_round E_bind.
Qed.

(** A drafter that changes after [first] tokens is two drafters, one after the other. *)
Section Stages.
Variables (State : Type) (first : nat) (more2 : State -> seq T -> seq T -> bool).
Variables (q1 : seq T -> T -> R) (q2 : State -> seq T -> seq T -> T -> R).
Definition staged_more (s : State) (c ds : seq T) := (size ds < first)%N || more2 s c ds.
Definition staged_pmf (s : State) (c ds : seq T) : T -> R := if (size ds < first)%N then q1 (c ++ ds) else q2 s c ds.

Lemma propose_beyond s c m : forall ds K, (first <= size ds)%N ->
  E (propose N V staged_more staged_pmf m s c ds) K = E (propose N V more2 q2 m s c ds) K.
Proof.
elim: m => [|m IH] ds K le //.
have moreE : staged_more s c ds = more2 s c ds by rewrite /staged_more ltnNge le.
case e: (more2 s c ds); last by rewrite /= moreE e.
rewrite !E_proposeS ?moreE // /staged_pmf ltnNge le; apply: eq_bigr => d _.
by rewrite IH // size_rcons (leq_trans le).
Qed.

Lemma propose_in_stages s c m : forall ds K,
  E (propose N V staged_more staged_pmf m s c ds) K
  = E (propose N V (fun _ _ _ => true) (fun _ c ds => q1 (c ++ ds)) (minn (first - size ds) m) s c ds) (fun l1 =>
      E (propose N V more2 q2 (m - size l1) s c (ds ++ l1)) (fun l2 => K (l1 ++ l2))).
Proof.
elim: m => [|m IH] ds K; first by rewrite minn0 !E_ret.
have [beyond|within] := leqP first (size ds).
  by rewrite (eqP beyond) min0n propose_beyond // E_ret cats0.
rewrite -subnSK // minnSS !E_proposeS // /staged_more ?within // /staged_pmf within; apply: eq_bigr => d _; congr (_ * _).
by rewrite IH size_rcons; apply: E_ext => l1; rewrite cat_rcons subSS.
Qed.
End Stages.

(** ** Cascades in stages (CS Drafting): tokens of inner rounds that are lossless for q1, then tokens of another drafter,
    each judged with the pmf that it has. *)
Theorem staged_lossless (State Inner : Type) (plan : State -> seq T -> nat)
    (inner : Inner -> nat -> seq T -> dist R (Inner * (seq T * T * nat))) (start : State -> Inner) inner_slack first
    (more2 : State -> seq T -> seq T -> bool) (q1 : seq T -> T -> R) (q2 : State -> seq T -> seq T -> T -> R)
    (next : State -> seq T -> seq T -> seq T * T * nat -> State) :
  (forall c, pmf (q1 c)) -> (forall s c ds, pmf (q2 s c ds)) -> lossless_round q1 inner -> forall eos slack n s c,
  same_law (decoded_text N eos (staged_round N plan inner start inner_slack
      (fun s c ds => judge N (sd (staged_pmf first q1 q2)) (target_bonus p) s c [::] ds) next V first more2 q2) slack n s c)
    (target_alone N V eos p n c).
Proof.
move=> H1 H2 inner_lossless eos slack n s c; apply: decoded_text_law => // s' m c' f K m0 target.
pose u := staged_pmf first q1 q2; have Hu s0 c0 ds : pmf (u s0 c0 ds) by rewrite /u /staged_pmf; case: ifP.
have := @chain_round_lossless _ _ State plan (staged_more first more2) u Hu (sd u) (target_bonus p) next p.
move=> /(_ (fun s c ks => speculative_rule_exact (Hp _) (Hu _ _ _)) (fun c K => erefl) s' m c' f K m0 target) <-.
rewrite /staged_round /chain_round [RHS]E_bind propose_in_stages subn0 -(sample_is_propose q1 _ s' c' [::]) cats0.
rewrite E_bind (decoded_text_law H1 [::] inner_slack inner_lossless) -/(sample q1 _ c'); apply: E_ext => ds1.
by rewrite [LHS]E_bind; apply: E_ext => ds2.
Qed.

End Theorems.

(** ** The counterexample: admission by a confidence that sees the drafted token is biased.
    Two tokens, p = q = (1/2, 1/2), and the second token is never sure enough: it is dropped and the target is sampled.
    The first token then comes out with probability 3/4. *)
Section Counterexample.
Variable R : realFieldType.
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary bool_finType).
Definition half (_ : bool) : R := 2%:R^-1.

Lemma pmf_half : pmf half.
Proof.
split=> [x|]; first by rewrite invr_ge0 ler0n.
rewrite big_bool /=; transitivity (2%:R^-1 *+ 2 : R); first by rewrite mulr2n.
by rewrite -(mulr_natr (2%:R^-1)) mulVf // pnatr_eq0.
Qed.

(** The first token comes out with probability 1/2 + 1/2 * 1/2. *)
Theorem dropped_token_is_biased :
  emitted half (dropped_token_rule N V id half half) (fun x => x%:R) = 2%:R^-1 + 2%:R^-1 * 2%:R^-1.
Proof.
rewrite /emitted big_bool /dropped_token_rule /= E_accept_or_replace E_bind E_token !big_bool /= !E_ret /=.
rewrite acceptE ltxx invr_gt0 ltr0n /=.
by rewrite !(subrr, mul0r, addr0, mul1r, mulr1, mulr0).
Qed.

(** So the rule is not exact for p. *)
Corollary dropped_token_not_exact : ~ exact_rule half half (dropped_token_rule N V id half half).
Proof.
move=> /(_ (fun x => x%:R)); rewrite dropped_token_is_biased big_bool /half /= mulr1 mulr0 => /eqP.
by rewrite addr0 -subr_eq0 addrAC subrr add0r mulf_eq0 invr_eq0 pnatr_eq0.
Qed.
End Counterexample.
