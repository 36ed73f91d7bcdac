(** * The converse, and the exact law of each biased shortcut.

    Accept a draft d with probability a(d), else emit from r.  Which pairs (a, r) are lossless, how often can a lossless
    rule accept, and what is the law of a rule that is not lossless? *)
From Lossless Require Import Probability OnePosition Texts Chain.

Section Converse.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (p q : T -> R).
Hypotheses (Hp : pmf p) (Hq : pmf q).

Lemma sum_indicator (f : T -> R) x : \sum_y f y * (y == x)%:R = f x.
Proof.
rewrite (bigD1 x) //= eqxx mulr1 big1 ?addr0 // => y /negbTE->.
by rewrite mulr0.
Qed.

Lemma kept_accept_or_replace (a : T -> R) (r : T -> T -> R) x :
  kept_by q (fun d => accept_or_replace N V (a d) (r d)) x = q x * a x.
Proof.
rewrite /kept_by E_accept_or_replace /= mulr1 big1 ?mulr0 ?addr0 // => y _.
by rewrite mulr0.
Qed.

Lemma replaced_accept_or_replace (a : T -> R) (r : T -> T -> R) x :
  replaced_by q (fun d => accept_or_replace N V (a d) (r d)) x = \sum_d q d * (1 - a d) * r d x.
Proof.
apply: eq_bigr => d _; rewrite E_accept_or_replace /= mulr0 add0r -mulrA; congr (_ * (_ * _)).
by rewrite -[RHS](sum_indicator (r d) x).
Qed.

(** With one replacement law for all drafts: what is not kept is spread by it. *)
Lemma replaced_fixed (a : T -> R) (r : T -> R) x :
  replaced_by q (fun d => accept_or_replace N V (a d) r) x = (1 - \sum_d q d * a d) * r x.
Proof.
rewrite (replaced_accept_or_replace a (fun=> r)) -mulr_suml; congr (_ * _).
rewrite (eq_bigr (fun d => q d - q d * a d)) => [|d _]; last by rewrite mulrBr mulr1.
by rewrite sumrB Hq.2.
Qed.

Section Rule.
Variables (a r : T -> R).
Hypotheses (a01 : forall x, 0 <= a x <= 1) (Hr : pmf r).
Local Notation rule := (fun d => accept_or_replace N V (a d) r).
Local Notation kept_total := (\sum_d q d * a d).

Lemma emitted_accept_or_replace F :
  emitted q rule F = \sum_x (q x * a x + (1 - kept_total) * r x) * F x.
Proof.
rewrite /emitted (eq_bigr (fun d => q d * a d * F d + q d * (1 - a d) * \sum_x r x * F x)); last first.
  by move=> d _; rewrite E_accept_or_replace mulrDr !mulrA.
rewrite big_split -mulr_suml /=.
rewrite (eq_bigr (F1 := fun d => q d * (1 - a d)) (fun d => q d - q d * a d)) => [|d _]; last by rewrite mulrBr mulr1.
rewrite sumrB Hq.2 mulr_sumr -big_split; apply: eq_bigr => x _ /=.
by rewrite [RHS]mulrDl mulrA.
Qed.

Lemma kept_total_le1 : kept_total <= 1.
Proof.
rewrite -Hq.2; apply: ler_sum => x _; have /andP[_ a1] := a01 x.
by rewrite ler_pimulr // Hq.1.
Qed.

Lemma kept_ge0 x : 0 <= q x * a x.
Proof. by have /andP[a0 _] := a01 x; rewrite mulr_ge0 // Hq.1. Qed.

(** ** The converse.
    Accepting with a and replacing from r is lossless if and only if q a <= p everywhere and, unless every draft is
    kept, r is what p is still owed, normalised: (p - q a) / (1 - sum q a). *)
Theorem exact_iff_owed :
  exact_rule p q rule <->
  (forall x, q x * a x <= p x) /\ (kept_total < 1 -> forall x, r x = (p x - q x * a x) / (1 - kept_total)).
Proof.
split=> [ex | [le_p owed] F].
  have at_x x : q x * a x + (1 - kept_total) * r x = p x.
    by rewrite -(sum_indicator p x) -ex emitted_accept_or_replace (sum_indicator (fun x => q x * a x + _ * r x)).
  split=> [x | lt1 x]; first by rewrite -(at_x x) ler_addl mulr_ge0 ?subr_ge0 ?kept_total_le1 // Hr.1.
  rewrite -(at_x x) addrC addKr mulrC mulKf //.
  by rewrite subr_eq0 eq_sym lt_eqF.
rewrite emitted_accept_or_replace; apply: eq_bigr => x _; congr (_ * _).
have := kept_total_le1; rewrite le_eqVlt => /orP[/eqP all_kept | lt1]; last first.
  have n0 : 1 - kept_total != 0 by rewrite subr_eq0 eq_sym lt_eqF.
  by rewrite owed // mulrCA divff // mulr1 addrC subrK.
rewrite all_kept subrr mul0r addr0.
have : \sum_y (p y - q y * a y) = 0 by rewrite sumrB Hp.2 all_kept subrr.
move/psumr_eq0P => zero; apply/eqP; rewrite eq_sym -subr_eq0; apply/eqP.
by apply: zero => // y _; rewrite subr_ge0.
Qed.

(** ** The best acceptance.
    A lossless pair (a, r) accepts with probability at most sum min(p, q). *)
Theorem acceptance_at_most_overlap : exact_rule p q rule -> kept_total <= overlap p q.
Proof.
move=> /exact_iff_owed[le_p _]; apply: ler_sum => x _.
by rewrite le_minr le_p andbT; have /andP[_ a1] := a01 x; rewrite ler_pimulr // Hq.1.
Qed.

(** It accepts with probability sum min(p, q) if and only if q a = min(p, q) everywhere. *)
Theorem optimal_iff_minimum : exact_rule p q rule ->
  (kept_total = overlap p q <-> forall x, q x * a x = Num.min (q x) (p x)).
Proof.
move=> ex; split=> [eq x | eq]; last by apply: eq_bigr => x _.
have [le_p _] := exact_iff_owed.1 ex.
have gap y : 0 <= Num.min (q y) (p y) - q y * a y.
  by rewrite subr_ge0 le_minr le_p andbT; have /andP[_ a1] := a01 y; rewrite ler_pimulr // Hq.1.
have : \sum_y (Num.min (q y) (p y) - q y * a y) = 0 by rewrite sumrB eq subrr.
move/psumr_eq0P => zero; apply/eqP; rewrite eq_sym -subr_eq0; apply/eqP.
by apply: zero => // y _; apply: gap.
Qed.

End Rule.

(** ** No lossless rule of any kind accepts more often.
    [rule] is any program that looks at the draft and keeps or replaces it; its weights are probabilities. *)
Theorem no_exact_rule_accepts_more (rule : T -> dist R (option T)) :
  (forall d wa, wa \in rule d -> 0 <= wa.1) -> (forall d, proper (rule d)) -> exact_rule p q rule ->
  \sum_d kept_by q rule d <= overlap p q.
Proof.
move=> weights total1 ex; apply: ler_sum => x _.
have mono d K L : (forall o, K o <= L o) -> E (rule d) K <= E (rule d) L.
  by move=> KL; rewrite /E !big_seq; apply: ler_sum => wa /weights w0; apply: ler_wpmul2l.
rewrite /kept_by le_minr; apply/andP; split.
  rewrite ler_pimulr ?Hq.1 // -[leRHS](total1 x); apply: mono => o.
  by case: (o == None); rewrite ?lexx ?ler01.
rewrite -(sum_indicator p x) -ex /emitted (bigD1 x) //= -[leLHS]addr0 ler_add //.
  by rewrite ler_wpmul2l ?Hq.1 //; apply: mono => -[y|] /=; rewrite ?ler0n // eqxx.
apply: sumr_ge0 => d _; rewrite mulr_ge0 ?Hq.1 //.
by rewrite -(total1 d 0); apply: mono => o; rewrite ler0n.
Qed.

End Converse.
