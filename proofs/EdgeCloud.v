(** * Rounds between an edge and a cloud: shared noise, silences, and blocks that the edge commits alone. *)
From Lossless Require Import Probability OnePosition Texts Chain Selection FixedBlock.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).

(** The cloud's own draw, which may depend on the draft: from [given d] if the draft is d.  The draft stays if both are
    equal. *)
Definition coupled_rule (given : T -> T -> R) (d : T) : dist R (option T) :=
  bind N (draw N V (given d)) (fun z => ret N (if z == d then None else Some z)).

Variable State : Type.
Variables (plan : State -> seq T -> nat) (q : State -> seq T -> seq T -> T -> R).
Variable judge_drafts : State -> seq T -> seq T -> dist R (seq T * T * nat).
Local Notation drafted := (propose N V (fun _ _ _ => true) q).

(** A round of which the answer is lost with the probability [late]; then the edge commits its first draft. *)
Definition timeout_round (late : R) (s : State) n (c : seq T) : dist R (State * (seq T * T * nat)) :=
  bind N (drafted (minn (plan s c) n.-1) s c [::]) (fun ds =>
    let verified := bind N (judge_drafts s c ds) (fun result => ret N (s, result)) in
    if ds is d :: _ then
      bind N (flip N late) (fun silent => if silent then ret N (s, ([::], d, 1%N)) else verified)
    else verified).

(** A round in which the edge commits blocks alone while [easy] approves of them; the first other block is judged. *)
Variables (eos : seq T) (easy : seq T -> seq T -> bool).
Definition behind_block (ks : seq T) (result : seq T * T * nat) : seq T * T * nat :=
  (ks ++ result.1.1, result.1.2, (size ks + result.2)%N).

(** A committed block [ds], not empty: all of its tokens count as accepted drafts. *)
Definition committed_alone (ks : seq T) (d : T) (ds : seq T) : seq T * T * nat :=
  (ks ++ belast d ds, last d ds, size (ks ++ d :: ds)).

Fixpoint gated_blocks fuel (s : State) n (c ks : seq T) : dist R (seq T * T * nat) :=
  bind N (drafted (minn (plan s (c ++ ks)) (n - size ks).-1) s (c ++ ks) [::]) (fun ds =>
    let verified := bind N (judge_drafts s (c ++ ks) ds) (fun result => ret N (behind_block ks result)) in
    if fuel is fuel'.+1 then
      if ds is d :: ds' then
        if easy (c ++ ks) ds then
          if has (fun y => y \in eos) ds then ret N (committed_alone ks d ds')
          else gated_blocks fuel' s n c (ks ++ ds)
        else verified
      else verified
    else verified).

Definition gated_round (s : State) n (c : seq T) : dist R (State * (seq T * T * nat)) :=
  bind N (gated_blocks n s n c [::]) (fun result => ret N (s, result)).

End Programs.

Section Coupled.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).

(** ** Any coupling of the draft with a draw from the target.
    Whatever the target's token depends on, given the draft: if it has the law p on average over the drafts, then the
    rule is exact for p. *)
Theorem coupled_rule_exact (p q : T -> R) (given : T -> T -> R) :
  (forall z, \sum_d q d * given d z = p z) -> exact_rule p q (coupled_rule N V given).
Proof.
move=> marginal F; rewrite /emitted.
rewrite (eq_bigr (fun d => \sum_z q d * given d z * F z)) => [|d _].
  rewrite exchange_big; apply: eq_bigr => z _ /=; rewrite -marginal mulr_suml.
  by apply: eq_bigr => d _.
rewrite E_bind E_token mulr_sumr; apply: eq_bigr => z _; rewrite E_ret mulrA.
by case: eqP => [-> | ].
Qed.

Variables (State : Type) (plan : State -> seq T -> nat) (more : State -> seq T -> seq T -> bool).
Variables (p : seq T -> T -> R) (q : State -> seq T -> seq T -> T -> R).
Hypotheses (Hp : forall c, pmf (p c)) (Hq : forall s c ds, pmf (q s c ds)).
Variable next : State -> seq T -> seq T -> seq T * T * nat -> State.

(** ** Draws over shared noise are lossless, drafts first.
    The drafter draws, the target draws given the drafter's draw, and the draft stays where both agree: for any coupling
    of the two pmfs at every place, among them that of two races over the same noise. *)
Theorem coupled_lossless (given : (T -> R) -> (T -> R) -> T -> T -> R) :
  (forall r u z, pmf r -> pmf u -> \sum_d u d * given r u d z = r z) -> forall eos slack n (s : State) c,
  same_law (decoded_text N eos
      (chain_round N V plan more q (fun s c ks => coupled_rule N V (given (p (c ++ ks)) (q s c ks))) (target_bonus p) next) slack n s c)
    (target_alone N V eos p n c).
Proof.
move=> marginal eos slack n s c; apply: chain_lossless => // s' c' ks; apply: coupled_rule_exact => z.
exact: marginal.
Qed.

End Coupled.

Section Laws.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (State : Type) (plan : State -> seq T -> nat) (q : State -> seq T -> seq T -> T -> R).
Hypothesis Hq : forall s c ds, pmf (q s c ds).
Variable rule : State -> seq T -> seq T -> T -> dist R (option T).
Variables (p : seq T -> T -> R) (late : R).
Local Notation judged := (fun s c ds => judge N rule (target_bonus p) s c [::] ds).
Local Notation timeout := (timeout_round N V plan q judged late).
Local Notation chain := (chain_round N V plan (fun _ _ _ => true) q rule (target_bonus p) (fun s _ _ _ => s)).

(** ** A silent cloud.
    A round with drafts commits one token of q with the probability [late], and is the verified round otherwise. *)
Theorem timeout_law s n c K : (0 < minn (plan s c) n.-1)%N ->
  E (timeout s n c) K = late * (\sum_x q s c [::] x * K (s, ([::], x, 1%N))) + (1 - late) * E (chain s n c) K.
Proof.
rewrite /timeout_round /chain_round !E_bind; case: (minn _ _) => // g _.
rewrite !E_proposeS // !mulr_sumr -big_split; apply: eq_bigr => d _ /=.
rewrite mulrCA [(1 - late) * _]mulrCA -mulrDr; congr (_ * _).
rewrite -(E_affine _ _ _ (proper_propose (fun _ _ _ => true) Hq g s c [:: d])); apply: E_ext => later.
by rewrite E_bind E_flip E_ret.
Qed.

(** Without drafts nothing is lost. *)
Theorem timeout_without_drafts s n c : minn (plan s c) n.-1 = 0%N -> same_law (timeout s n c) (chain s n c).
Proof. by move=> g0 K; rewrite /timeout_round /chain_round g0 !E_bind /= !E_ret. Qed.

(** ** The bias of one silence.
    If the verified rounds are lossless, then one round, followed by the target, has the law of the target with its next
    token from (1 - late) p + late q. *)
Theorem timeout_bias_law s n c f K : (0 < minn (plan s c) n.-1)%N -> lossless_round p chain ->
  goes_on_as_target p n c f K ->
  E (timeout s n c) K
  = \sum_x (late * q s c [::] x + (1 - late) * p c x) * behind p n c f [:: x].
Proof.
move=> drafts lossless target; have n0 : (0 < n)%N by move: drafts; rewrite leq_min; case: n {target} => //; rewrite andbF.
rewrite timeout_law // (lossless s n c f K n0 target) -(behind_nothing p) -(target_behind p c f (ks := [::]) n0) cats0.
rewrite !mulr_sumr -big_split; apply: eq_bigr => x _ /=.
by rewrite target [in RHS]mulrDl !mulrA.
Qed.

Variables (eos : seq T) (easy : seq T -> seq T -> bool).
Local Notation gated := (gated_blocks N V plan q judged eos easy).

(** ** Blocks that the edge commits alone.
    The law of a round, block by block: a block of q that the gate approves of stays unverified, and the round goes on
    behind it; any other is judged. *)
Theorem gated_law fuel s n c ks K :
  let c' := c ++ ks in
  E (gated fuel.+1 s n c ks) K
  = \sum_(t : (minn (plan s c') (n - size ks).-1).-tuple T) block_mass N q s c' [::] t *
      (let verified := E (judged s c' t) (fun result => K (behind_block ks result)) in
       if tval t is d :: t' then
         if easy c' t then
           if has (fun y => y \in eos) t then K (committed_alone ks d t') else E (gated fuel s n c (ks ++ t)) K
         else verified
       else verified).
Proof.
move=> c' /=; rewrite E_bind (expected_over_blocks q _ s c' [::]); apply: eq_bigr => t _; congr (_ * _).
have verified ds : E (bind N (judged s c' ds) (fun result => ret N (behind_block ks result))) K
    = E (judged s c' ds) (fun result => K (behind_block ks result)).
  by rewrite E_bind; apply: E_ext => result; rewrite E_ret.
case: (tval t) => [|d ds]; first exact: verified.
lazy beta match zeta.
by case: ifP => _; rewrite ?verified //; case: ifP => _; rewrite ?E_ret.
Qed.

End Laws.
