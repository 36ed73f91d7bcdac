(** * How many drafts are accepted on average.

    Closed recursions for chains and for block verification, and the proof that block verification never accepts fewer
    drafts than speculative sampling does. *)
From Lossless Require Import Probability OnePosition Texts Chain Converse Block.

Section Acceptance.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (State : Type) (more : State -> seq T -> seq T -> bool).
Variables (p : seq T -> T -> R) (q : State -> seq T -> seq T -> T -> R).
Hypotheses (Hp : forall c, pmf (p c)) (Hq : forall s c ds, pmf (q s c ds)).
Local Notation rule := (fun s c ks => speculative_rule N V (p (c ++ ks)) (q s c ks)).

(** Accepted drafts of speculative sampling: each stays with mass min(p, q), and so on behind it. *)
Fixpoint expected_chain g s c ks : R :=
  if g is g'.+1 then
    if more s c ks then \sum_d Num.min (q s c ks d) (p (c ++ ks) d) * (1 + expected_chain g' s c (rcons ks d)) else 0
  else 0.

(** Accepted drafts of block verification: the average capped ratio of each prefix, added up. *)
Fixpoint expected_block g (w : R) s c ks : R :=
  if g is g'.+1 then
    if more s c ks then
      \sum_d q s c ks d * (accept_probability N (weighted N w (p (c ++ ks))) (q s c ks) d
        + expected_block g' (accept_probability N (weighted N w (p (c ++ ks))) (q s c ks) d) s c (rcons ks d))
    else 0
  else 0.

Definition accepted (result : seq T * T * nat) : R := result.2%:R.

Lemma sum_kept s c ks : \sum_x kept_by (q s c ks) (rule s c ks) x + \sum_x replaced_by (q s c ks) (rule s c ks) x = 1.
Proof.
have -> : 1 = \sum_d q s c ks d * E (rule s c ks d) (fun=> 1 : R).
  rewrite -[LHS](Hq s c ks).2; apply: eq_bigr => d _.
  by rewrite (proper_accept_or_replace _ (pmf_excess_law _ (Hp _))) mulr1.
rewrite exchange_big -big_split; apply: eq_bigr => d _ /=.
rewrite -mulr_sumr -mulrDr; congr (_ * _); rewrite [RHS]E_option mulr1; congr (_ + _).
by apply: eq_bigr => x _; rewrite mulr1.
Qed.

Lemma expected_token_by_token g s c : forall ks,
  E (token_by_token N V more q rule (target_bonus p) g s c ks) accepted = (size ks)%:R + expected_chain g s c ks.
Proof.
have ending ks : E (bind N (target_bonus p (c ++ ks)) (fun x => ret N (ks, x, size ks))) accepted = (size ks)%:R.
  rewrite E_bind (E_ext _ (L := fun=> (size ks)%:R)) ?(proper_draw (Hp _)) // => x.
  by rewrite E_ret.
elim: g => [|g IH] ks; first by rewrite /= ending addr0.
case m: (more s c ks); last by rewrite /= m ending addr0.
rewrite law_of_one_position // [expected_chain _ _ _ _]/= m.
have -> : \sum_x replaced_by (q s c ks) (rule s c ks) x * accepted (ks, x, size ks)
    = (\sum_x replaced_by (q s c ks) (rule s c ks) x) * (size ks)%:R by rewrite mulr_suml.
have minE x : kept_by (q s c ks) (rule s c ks) x = Num.min (q s c ks x) (p (c ++ ks) x).
  rewrite (kept_accept_or_replace (q s c ks) _ (fun=> excess_law N V (p (c ++ ks)) (q s c ks))).
  by rewrite kept_mass //; [exact: (Hp _).1 | exact: (Hq _ _ _).1].
rewrite (eq_bigr (fun x => kept_by (q s c ks) (rule s c ks) x * (size ks)%:R
    + kept_by (q s c ks) (rule s c ks) x * (1 + expected_chain g s c (rcons ks x)))) => [|x _]; last first.
  by rewrite IH size_rcons -mulrDr -addn1 natrD -addrA.
rewrite big_split /= addrAC -mulr_suml -mulrDl sum_kept mul1r; congr (_ + _).
by apply: eq_bigr => x _; rewrite minE.
Qed.

(** ** The accepted drafts of a round of speculative sampling. *)
Theorem expected_accepted_chain g s c :
  E (bind N (propose N V more q g s c [::]) (judge N rule (target_bonus p) s c [::])) accepted
  = expected_chain g s c [::].
Proof.
transitivity (E (token_by_token N V more q rule (target_bonus p) g s c [::]) accepted).
  exact: draft_first_is_token_by_token.
by rewrite expected_token_by_token add0r.
Qed.

Lemma expected_coins g s c : forall w ks fail, 0 <= w <= 1 ->
  E (propose N V more q g s c ks) (fun ds => E (block_coins N V p q s c w ks ds) (or_else accepted fail))
  = w * (size ks)%:R + (1 - w) * fail + expected_block g w s c ks.
Proof.
have ending w ks fail : E (block_coins N V p q s c w ks [::]) (or_else accepted fail) = w * (size ks)%:R + (1 - w) * fail.
  rewrite /= E_bind E_flip E_ret /= E_bind (E_ext _ (L := fun=> (size ks)%:R)) => [|x]; last by rewrite E_ret.
  by rewrite (proper_draw (Hp _)).
elim: g => [|g IH] w ks fail /andP[w0 w1]; first by rewrite E_ret ending addr0.
case m: (more s c ks); last by rewrite /propose /expected_block m E_ret ending addr0.
rewrite E_proposeS // [expected_block _ _ _ _ _]/= m.
set r := p (c ++ ks); set u := q s c ks.
have [r0 r1] := Hp (c ++ ks); have [u0 u1] := Hq s c ks.
have -> : w * (size ks)%:R = w * \sum_x r x * (size ks)%:R by rewrite -mulr_suml r1 mul1r.
rewrite -(@weighted_step _ _ w r u (accept_probability N (weighted N w r) u) (excess_law N V (weighted N w r) u)
  (fun=> (size ks)%:R) (block_heads N V w r u)) //; first last.
- exact: block_heads_balance.
- by move=> x; exact: excess_lawE.
- by move=> d; apply: kept_mass => //; rewrite mulr_ge0.
rewrite -big_split; apply: eq_bigr => d _ /=; rewrite -mulrDr; congr (_ * _).
set a := accept_probability N (weighted N w r) u d; set rest := block_heads N V w r u * _ + _.
have a01 : 0 <= a <= 1 by apply: accept_range; rewrite mulr_ge0.
transitivity (E (propose N V more q g s c (rcons ks d)) (fun later =>
    E (block_coins N V p q s c a (rcons ks d) later) (or_else accepted rest))).
  apply: E_ext => later; rewrite /= E_bind; apply: E_ext => -[result|] /=; first by rewrite E_ret.
  rewrite E_bind E_flip E_ret E_bind E_token; congr (_ * _ + _).
  by apply: eq_bigr => x _; rewrite E_ret.
rewrite IH // size_rcons -addn1 natrD mulrDr mulr1 -!addrA; congr (_ + _).
by rewrite addrCA.
Qed.

(** ** The accepted drafts of a round of block verification. *)
Theorem expected_accepted_block g s c :
  E (bind N (propose N V more q g s c [::]) (block_judge N V p q s c)) accepted = expected_block g 1 s c [::].
Proof.
rewrite E_bind (E_ext _ (fun ds => E_something_stays _ _)) expected_coins ?ler01 ?lexx //.
by rewrite mulr0 subrr mul0r !add0r.
Qed.

Lemma expected_chain_ge0 g s c : forall ks, 0 <= expected_chain g s c ks.
Proof.
elim: g => [|g IH] ks //=; case: ifP => // _; apply: sumr_ge0 => d _.
by rewrite mulr_ge0 ?addr_ge0 ?ler01 // le_minr (Hq _ _ _).1 (Hp _).1.
Qed.

Lemma block_at_least_weighted g s c : forall w ks, 0 <= w <= 1 -> w * expected_chain g s c ks <= expected_block g w s c ks.
Proof.
elim: g => [|g IH] w ks /andP[w0 w1] /=; first by rewrite mulr0.
case: ifP => _; last by rewrite mulr0.
rewrite mulr_sumr; apply: ler_sum => d _.
have p0 := (Hp (c ++ ks)).1 d; have q0 := (Hq s c ks).1 d; have wp0 : 0 <= w * p (c ++ ks) d by rewrite mulr_ge0.
set a := accept_probability N _ _ d.
have a01 : 0 <= a <= 1 by apply: accept_range.
have qa : q s c ks d * a = Num.min (q s c ks d) (w * p (c ++ ks) d) by apply: kept_mass.
have more_kept : w * Num.min (q s c ks d) (p (c ++ ks) d) <= q s c ks d * a.
  rewrite qa le_minr; apply/andP; split; last by rewrite ler_wpmul2l // le_minl lexx orbT.
  have min0 : 0 <= Num.min (q s c ks d) (p (c ++ ks) d) by rewrite le_minr q0 p0.
  by apply: (le_trans (ler_pimull min0 w1)); rewrite le_minl lexx.
apply: (@le_trans _ _ (q s c ks d * a * (1 + expected_chain g s c (rcons ks d)))).
  by rewrite mulrA ler_wpmul2r // addr_ge0 ?ler01 ?expected_chain_ge0.
rewrite -mulrA ler_wpmul2l // mulrDr mulr1 ler_add2l.
exact: IH.
Qed.

(** ** Block verification accepts at least as many drafts on average as speculative sampling, for all p, q and gamma. *)
Theorem block_accepts_at_least_as_many g s c : expected_chain g s c [::] <= expected_block g 1 s c [::].
Proof. by rewrite -[X in X <= _]mul1r block_at_least_weighted // ler01 lexx. Qed.

End Acceptance.
