(** * Several requests in one batch: schedules that see the drafts, and rounds that are cut to the length of another. *)
From Lossless Require Import Probability OnePosition Texts Chain FixedBlock.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).
Variables (State Other : Type).

(** What the other requests draw in a round, and how many drafts of the block behind the text [c] a schedule then has
    room for; it may look at every drafted token. *)
Variables (others : State -> dist R Other) (room : seq T -> seq T -> Other -> nat).
Variables (plan : State -> seq T -> nat) (q : State -> seq T -> seq T -> T -> R).
Variable judge_drafts : State -> seq T -> seq T -> dist R (seq T * T * nat).

Definition scheduled_round (s : State) n (c : seq T) : dist R (State * (seq T * T * nat)) :=
  bind N (propose N V (fun _ _ _ => true) q (minn (plan s c) n.-1) s c [::]) (fun ds =>
  bind N (others s) (fun o =>
  bind N (judge_drafts s c (take (room c ds o) ds)) (fun result => ret N (s, result)))).

(** The first [m] tokens of a block, at least one. *)
Definition cut_to m (result : seq T * T * nat) : seq T * T * nat :=
  let: (kept, last, a) := result in
  if drop m.-1 kept is x :: _ then (take m.-1 kept, x, minn a m) else (kept, last, a).

(** A round whose block is cut to as many tokens as [others] leave; they do not look at it. *)
Definition cut_round (length : Other -> nat) (round : State -> nat -> seq T -> dist R (State * (seq T * T * nat)))
    (s : State) n (c : seq T) : dist R (State * (seq T * T * nat)) :=
  bind N (round s n c) (fun after =>
  bind N (others s) (fun o => ret N (after.1, cut_to (length o) after.2))).

End Programs.

Section Theorems.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (State Other : Type) (others : State -> dist R Other).
Hypothesis Hothers : forall s, proper (others s).

Lemma E_by_value A (d : dist R A) (v : A -> nat) m (F : nat -> R) : (forall a, (v a <= m)%N) ->
  E d (fun a => F (v a)) = \sum_(k < m.+1) E d (fun a => (v a == k)%:R) * F k.
Proof.
move=> vm; rewrite (E_ext _ (L := fun a => \sum_(k < m.+1) F k * (v a == k)%:R)) => [|a]; last first.
  have va : (v a < m.+1)%N by rewrite ltnS.
  rewrite (bigD1 (Ordinal va)) //= eqxx mulr1 big1 ?addr0 // => k /negbTE kv.
  by rewrite eq_sym [_ == _]kv mulr0.
rewrite E_sum; apply: eq_bigr => k _.
by rewrite E_scale mulrC.
Qed.

(** ** Verification scheduled by confidences that see the drafts: every block of q, weighted, cut to k drafts as often as
    the others leave room for k beside this very block, and then judged. *)
Theorem scheduled_law (room : seq T -> seq T -> Other -> nat) (plan : State -> seq T -> nat)
    (q : State -> seq T -> seq T -> T -> R) (judge_drafts : State -> seq T -> seq T -> dist R (seq T * T * nat)) s n c K :
  E (scheduled_round N V others room plan q judge_drafts s n c) K
  = \sum_(t : (minn (plan s c) n.-1).-tuple T) block_mass N q s c [::] t *
      \sum_(k < (size t).+1) E (others s) (fun o => (minn (room c t o) (size t) == k)%:R)
        * E (judge_drafts s c (take k t)) (fun result => K (s, result)).
Proof.
rewrite E_bind expected_over_blocks; apply: eq_bigr => t _; congr (_ * _).
rewrite E_bind -(@E_by_value _ (others s) (fun o => minn (room c t o) (size t)) (size t)
  (fun k => E (judge_drafts s c (take k t)) (fun result => K (s, result)))) => [|o]; last exact: geq_minr.
apply: E_ext => o; rewrite E_bind.
have -> : take (minn (room c t o) (size t)) t = take (room c t o) t.
  by rewrite /minn; case: ltnP => // le; rewrite take_size take_oversize.
by apply: E_ext => result; rewrite E_ret.
Qed.

Variable p : seq T -> T -> R.
Hypothesis Hp : forall c, pmf (p c).

(** Sampling on behind a shorter sample is sampling. *)
Lemma sample_again k : forall j c (f : seq T -> R),
  E (sample p j c) (fun t => behind p j c f (take k t)) = E (sample p j c) f.
Proof.
elim: k => [|k IH] [|j] c f.
- by rewrite E_sample0 take0 behind_nothing E_sample0.
- by rewrite (E_ext _ (L := fun=> E (sample p j.+1 c) f)) ?proper_sample // => t; rewrite take0 behind_nothing.
- by rewrite !E_sample0 /behind /= E_sample0.
rewrite !E_sampleS; apply: eq_bigr => x _; congr (_ * _); rewrite -(IH j (rcons c x) (fun t => f (x :: t))).
by apply: E_ext => t; rewrite /behind /= subSS cat_rcons.
Qed.

(** ** A lossless round that is cut to a length that does not depend on it is lossless. *)
Theorem cut_round_lossless (length : Other -> nat) (round : State -> nat -> seq T -> dist R (State * (seq T * T * nat))) :
  (forall o, (0 < length o)%N) -> lossless_round p round -> lossless_round p (cut_round N others length round).
Proof.
move=> length0 lossless s n c f K n0 target; rewrite E_bind.
rewrite (E_ext _ (fun after => E_bind _ _ _)) E_exchange.
rewrite -[RHS](Hothers s); apply: E_ext => o; set m := length o; have m0 : (0 < m)%N := length0 o.
pose g t := behind p n c f (take m t).
rewrite -(sample_again m n c f) -(lossless s n c g (fun after => K (after.1, cut_to m after.2))) //.
  by apply: E_ext => after; rewrite E_ret.
move=> s' kept last a; rewrite /= /g.
have [long|short] := leqP m (size kept).
  have : (m.-1 < size kept)%N by rewrite prednK.
  move=> lt; rewrite (drop_nth last lt) target.
  rewrite -(take_nth last lt) prednK //.
  rewrite /behind -/(behind p n c f _).
  rewrite (E_ext _ (L := fun=> behind p n c f (take m kept))) ?proper_sample // => t.
  by rewrite cat_rcons takel_cat.
rewrite drop_oversize ?target; last by rewrite -ltnS prednK.
set b := rcons kept last.
have bm : (size b <= m)%N by rewrite size_rcons.
rewrite [RHS]/behind (E_ext _ (L := fun t => behind p (n - size b) (c ++ b) (fun u => f (b ++ u)) (take (m - size b) t))) => [|t].
  by rewrite sample_again.
rewrite take_cat ltnNge bm /= /behind size_cat subnDA catA.
by apply: E_ext => u; rewrite catA.
Qed.

(** The same for texts: a batch in lockstep. *)
Corollary cut_lossless (length : Other -> nat) (round : State -> nat -> seq T -> dist R (State * (seq T * T * nat))) :
  (forall o, (0 < length o)%N) -> lossless_round p round -> forall eos slack n s c,
  same_law (decoded_text N eos (cut_round N others length round) slack n s c) (target_alone N V eos p n c).
Proof. by move=> length0 lossless eos slack n s c; apply: decoded_text_law => //; exact: cut_round_lossless. Qed.

End Theorems.
