(** * The exact law of each biased shortcut.

    Each rule is a pair: how often the draft d stays, and what replaces it.  Its law is the pair of masses with which a
    token comes out of one position, kept and as a replacement; [law_of_one_position] and [draft_first_is_token_by_token]
    make the law of whole rounds of them. *)
From Lossless Require Import Probability OnePosition Texts Chain Converse.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).
Implicit Types (p q : T -> R).

(** After a rejection sample the target itself. *)
Definition resample_rule p q (d : T) := accept_or_replace N V (accept_probability N p q d) p.

(** Accept with min(1, p / (l q)). *)
Definition lenient_rule (l : R) p q (d : T) :=
  accept_or_replace N V (accept_probability N p (fun x => times N l (q x)) d) (excess_law N V p q).

(** Accept if and only if p(d) >= q(d), else sample the target. *)
Definition likelier_rule p q (d : T) :=
  accept_or_replace N V (if less N (p d) (q d) then zero N else one N) p.

(** The residual of a verifier that knows the scalar q(d) alone. *)
Definition scalar_rule p q (d : T) :=
  accept_or_replace N V (accept_probability N p q d)
    (excess_law N V p (fun x => if x == d then q d else zero N)).

(** Accept the drafts that are [good], else draw from [r]. *)
Definition threshold_rule (good : T -> bool) (r : T -> R) (d : T) :=
  accept_or_replace N V (if good d then one N else zero N) r.

(** Keep d while a draw from t equals it, then draw from t again. *)
Definition match_twice_rule (t : T -> R) (d : T) := accept_or_replace N V (t d) t.

(** Accept the drafts that a judge approves, and else as speculative sampling does. *)
Definition judge_rule (good : T -> bool) p q (d : T) :=
  accept_or_replace N V (if good d then one N else accept_probability N p q d) (excess_law N V p q).

(** Speculative sampling of a target h_d that depends on the draft. *)
Definition raised_rule (h : T -> T -> R) q (d : T) :=
  accept_or_replace N V (accept_probability N (h d) q d) (excess_law N V (h d) q).

(** Reward guidance: a round is one token, drafted and kept if it is [good], else drawn from the target. *)
Definition reward_round State (p q : seq T -> T -> R) (good : seq T -> T -> bool) (s : State) (n : nat) (c : seq T) :
    dist R (State * (seq T * T * nat)) :=
  bind N (draw N V (q c)) (fun d =>
    if good c d then ret N (s, ([::], d, 1%N))
    else bind N (draw N V (p c)) (fun x => ret N (s, ([::], x, 0%N)))).

(** q on T, and the target's draw for what is not in T. *)
Definition keep_tokens (good : T -> bool) p q : T -> R :=
  let kept x := if good x then q x else zero N in
  fun x => plus N (kept x) (times N (minus N (one N) (total N V kept)) (p x)).

End Programs.

Section Laws.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (p q : T -> R).
Hypotheses (Hp : pmf p) (Hq : pmf q).

Let p0 := Hp.1.
Let q0 := Hq.1.

(** The law of one position: [kept x] is the mass of [x] as an accepted draft, [replaced x] as a replacement. *)
Definition law_is (rule : T -> dist R (option T)) (kept replaced : T -> R) :=
  (forall x, kept_by q rule x = kept x) /\ (forall x, replaced_by q rule x = replaced x).

Lemma law_fixed (a r kept : T -> R) : (forall x, q x * a x = kept x) ->
  law_is (fun d => accept_or_replace N V (a d) r) kept (fun x => (1 - \sum_y kept y) * r x).
Proof.
move=> qa; split=> x; first by rewrite (kept_accept_or_replace q a (fun=> r)).
by rewrite replaced_fixed // (eq_bigr kept).
Qed.

(** ** Resampling from the target: min(p, q), and TV(p, q) p.  What is missing of (p - q)+ never comes back. *)
Theorem resample_law :
  law_is (resample_rule N V p q) (fun x => Num.min (q x) (p x)) (fun x => (\sum_y excess N p q y) * p x).
Proof.
have [kept repl] := law_fixed p (fun x => kept_mass (q := q) (p0 x) (q0 x)); split=> // x; rewrite [LHS]repl.
congr (_ * _); rewrite -(rejected_mass Hp.2 Hq.2 p0 q0) (eq_bigr _ (fun y _ => esym (kept_mass (p0 y) (q0 y)))).
by rewrite -{1}Hq.2 -sumrB; apply: eq_bigr => y _; rewrite mulrBr mulr1.
Qed.

(** ** Lenience: m = min(q, p / l), and (1 - sum m) norm((p - q)+). *)
Theorem lenience_law (l : R) : 0 < l ->
  law_is (lenient_rule N V l p q) (fun x => Num.min (q x) (p x / l))
    (fun x => (1 - \sum_y Num.min (q y) (p y / l)) * excess_law N V p q x).
Proof.
move=> l0; apply: law_fixed => x.
have ln : l != 0 by rewrite gt_eqF.
apply: (mulfI ln); rewrite mulrA (kept_mass (q := fun y => l * q y)) ?mulr_ge0 ?(ltW l0) //.
by rewrite minr_pmulr ?(ltW l0) // (mulrCA l) divff // mulr1.
Qed.

(** ** Accept if likelier: q where p >= q, and the rest of q spread by p. *)
Theorem likelier_law :
  law_is (likelier_rule N V p q) (fun x => if p x < q x then 0 else q x)
    (fun x => (1 - \sum_y (if p y < q y then 0 else q y)) * p x).
Proof. by apply: law_fixed => x /=; case: ifP; rewrite ?mulr0 ?mulr1. Qed.

(** ** Thresholds (typical acceptance, SpecDec, BiLD, the seed rule of NASD, fuzzy speculative decoding): q on the good
    tokens, and the rest of q spread by r. *)
Theorem threshold_law (good : T -> bool) (r : T -> R) :
  law_is (threshold_rule N V good r) (fun x => if good x then q x else 0)
    (fun x => (1 - \sum_y (if good y then q y else 0)) * r x).
Proof. by apply: law_fixed => x /=; case: ifP; rewrite ?mulr0 ?mulr1. Qed.

(** ** Matching with a draw and drawing again (NASD as released, Medusa's typical mode): q t, and (1 - sum q t) t. *)
Theorem match_twice_law (t : T -> R) :
  law_is (match_twice_rule N V t) (fun x => q x * t x) (fun x => (1 - \sum_y q y * t y) * t x).
Proof. exact: law_fixed. Qed.

(** ** Judge decoding: q where the judge approves, min(p, q) elsewhere, and the rest spread by norm((p - q)+). *)
Theorem judge_law (good : T -> bool) :
  law_is (judge_rule N V good p q) (fun x => if good x then q x else Num.min (q x) (p x))
    (fun x => (1 - \sum_y (if good y then q y else Num.min (q y) (p y))) * excess_law N V p q x).
Proof. by apply: law_fixed => x /=; case: ifP => _; rewrite ?mulr1 ?kept_mass. Qed.

(** ** Cactus: each draft d against its own h_d; what is not kept of d is spread by norm((h_d - q)+). *)
Theorem raised_law (h : T -> T -> R) : (forall d, 0 <= h d d) ->
  law_is (raised_rule N V h q) (fun x => Num.min (q x) (h x x))
    (fun x => \sum_d (q d - Num.min (q d) (h d d)) * excess_law N V (h d) q x).
Proof.
move=> h0; split=> x.
  by rewrite (kept_accept_or_replace q _ (fun d => excess_law N V (h d) q)) kept_mass.
rewrite (replaced_accept_or_replace q _ (fun d => excess_law N V (h d) q)); apply: eq_bigr => d _.
by rewrite mulrBr mulr1 kept_mass.
Qed.

(** ** The scalar residual: min(p, q), and p(v) times the sum over y <> v of (q - p)+(y) / (1 - p(y)). *)
Theorem scalar_law :
  law_is (scalar_rule N V p q) (fun x => Num.min (q x) (p x))
    (fun x => p x * \sum_(y | y != x) excess N q p y / (1 - p y)).
Proof.
split=> x.
  by rewrite (kept_accept_or_replace q _ (fun d => excess_law N V p (fun x => if x == d then q d else 0))) kept_mass.
rewrite (replaced_accept_or_replace q _ (fun d => excess_law N V p (fun x => if x == d then q d else 0))).
rewrite [RHS]mulrC mulr_suml [RHS]big_mkcond; apply: eq_bigr => d _ /=.
rewrite mulrBr mulr1 kept_mass // -minC -excess_sub.
have [->|dx] := eqVneq d x; last first.
  have [zero|nz] := eqVneq (excess N q p d) 0; first by rewrite zero !mul0r.
  have qp : p d < q d by move: nz; rewrite excessE; case: ltP => // h; rewrite max_r ?eqxx // subr_le0.
  have other y : y != d -> excess N p (fun z => if z == d then q d else 0) y = p y.
    by move=> /negbTE yd; rewrite excessE yd subr0 max_l.
  have own : excess N p (fun z => if z == d then q d else 0) d = 0.
    by rewrite excessE eqxx max_r // subr_le0 ltW.
  have mass : \sum_y excess N p (fun z => if z == d then q d else 0) y = 1 - p d.
    rewrite (bigD1 d) //= own add0r -Hp.2 [in RHS](bigD1 d) //= addrC addKr.
    by apply: eq_bigr => y; apply: other.
  have pos : 0 < 1 - p d.
    rewrite subr_gt0; apply: lt_le_trans qp _; rewrite -Hq.2 (bigD1 d) //= ler_addl sumr_ge0 // => y _.
  by rewrite /excess_law total_token /= mass pos other 1?eq_sym // -!mulrA; congr (_ * _); rewrite mulrC.
have [zero|nz] := eqVneq (excess N q p x) 0; first by rewrite zero mul0r.
have qp : p x < q x by move: nz; rewrite excessE; case: ltP => // h; rewrite max_r ?eqxx // subr_le0.
have own : excess N p (fun z => if z == x then q x else 0) x = 0.
  by rewrite excessE eqxx max_r // subr_le0 ltW.
have other y : y != x -> excess N p (fun z => if z == x then q x else 0) y = p y.
  by move=> /negbTE yd; rewrite excessE yd subr0 max_l.
have mass : \sum_y excess N p (fun z => if z == x then q x else 0) y = 1 - p x.
  rewrite (bigD1 x) //= own add0r -Hp.2 [in RHS](bigD1 x) //= addrC addKr.
  by apply: eq_bigr => y; apply: other.
have pos : 0 < 1 - p x.
  rewrite subr_gt0; apply: lt_le_trans qp _; rewrite -Hq.2 (bigD1 x) //= ler_addl sumr_ge0 // => y _.
by rewrite /excess_law total_token /= mass pos own mul0r mulr0.
Qed.

(** ** A deterministic draft g under any accept-or-replace rule: a(g) on g, and (1 - a(g)) r(g). *)
Theorem deterministic_law (g : T) (a : T -> R) (r : T -> T -> R) x :
  kept_by (point_mass R g) (fun d => accept_or_replace N V (a d) (r d)) x = point_mass R g x * a x /\
  replaced_by (point_mass R g) (fun d => accept_or_replace N V (a d) (r d)) x = (1 - a g) * r g x.
Proof.
split; first exact: kept_accept_or_replace.
rewrite replaced_accept_or_replace -(sum_point_mass g (fun d => (1 - a d) * r d x)).
by apply: eq_bigr => d _; rewrite mulrA.
Qed.

(** The mixture of q on T and p is a pmf, so that speculative sampling of it is lossless for it. *)
Lemma pmf_keep_tokens (good : T -> bool) : pmf (keep_tokens N V good p q).
Proof.
have kept0 x : 0 <= (if good x then q x else 0) by case: ifP.
have le1 : \sum_x (if good x then q x else 0) <= 1 by rewrite -Hq.2; apply: ler_sum => x _; case: ifP.
split=> [x|]; rewrite /keep_tokens /= total_token; first by rewrite addr_ge0 // mulr_ge0 // subr_ge0.
by rewrite big_split /= -mulr_sumr Hp.2 mulr1 [LHS]addrC subrK.
Qed.

End Laws.

Section Reward.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (p q : seq T -> T -> R) (good : seq T -> T -> bool).
Hypotheses (Hp : forall c, pmf (p c)) (Hq : forall c, pmf (q c)).

(** ** Reward guidance has the law of the model q 1[good] + q(not good) p decoding alone. *)
Theorem reward_law (State : Type) eos slack n (s : State) c :
  same_law (decoded_text N eos (reward_round N V p q good (State := State)) slack n s c)
           (target_alone N V eos (fun c => keep_tokens N V (good c) (p c) (q c)) n c).
Proof.
apply: decoded_text_law => [c'|s' [//|m] c' f K _ target]; first exact: pmf_keep_tokens.
set mix := fun c => keep_tokens N V (good c) (p c) (q c); pose B x := behind mix m.+1 c' f [:: x].
rewrite /reward_round E_bind E_token -behind_nothing -(target_behind mix c' f (ks := [::])) // cats0.
transitivity (\sum_d ((if good c' d then q c' d else 0) * B d
   + (q c' d - (if good c' d then q c' d else 0)) * \sum_x p c' x * B x)).
  apply: eq_bigr => d _; case: ifP => _; first by rewrite E_ret target subrr mul0r addr0.
  rewrite mul0r add0r subr0 E_bind E_token; congr (_ * _); apply: eq_bigr => x _.
  by rewrite E_ret target.
rewrite big_split -mulr_suml sumrB (Hq c').2 mulr_sumr -big_split; apply: eq_bigr => x _ /=.
by rewrite /mix /keep_tokens /= total_token [RHS]mulrDl mulrA.
Qed.

End Reward.
