(** * One drafted token: keep it or replace it.

    A rule looks at one drafted token and either keeps it ([None]) or replaces it ([Some x]).  It is exact for the model
    [p] if the token that comes out, kept draft or replacement, has the law [p] whenever the draft has the law [q]. *)
From Lossless Require Import Probability.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).
Implicit Types (p q r : T -> R).

(** min(1, p(x) / q(x)) without a division by zero. *)
Definition accept_probability p q (x : T) : R :=
  if less N (p x) (q x) then over N (p x) (q x) else if less N (zero N) (p x) then one N else zero N.

Definition excess p q (x : T) : R := positive_part N (minus N (p x) (q x)).

(** norm((p - q)+), and p where there is no excess. *)
Definition excess_law p q : T -> R :=
  let mass := total N V (excess p q) in if less N (zero N) mass then (fun x => over N (excess p q x) mass) else p.

(** Keep the draft with probability [a], else draw a replacement from [r]. *)
Definition accept_or_replace (a : R) r : dist R (option T) :=
  bind N (flip N a) (fun kept => if kept then ret N None else bind N (draw N V r) (fun x => ret N (Some x))).

(** Speculative sampling: keep [d] with probability min(1, p/q), else draw from norm((p - q)+). *)
Definition speculative_rule p q (d : T) : dist R (option T) :=
  accept_or_replace (accept_probability p q d) (excess_law p q).

(** Sample and match: draw from [p]; keep [d] if the draw equals it, else emit the draw. *)
Definition match_rule p (d : T) : dist R (option T) :=
  bind N (draw N V p) (fun z => ret N (if z == d then None else Some z)).

(** Drop drafts that the drafter itself finds unlikely; [sure x] says that [x] is likely enough. *)
Definition drop_rule (sure : T -> bool) p q (d : T) : dist R (option T) :=
  let kept x := if sure x then q x else zero N in
  accept_or_replace (if nonzero N (kept d) then accept_probability p q d else zero N) (excess_law p kept).

End Programs.

Section Theorems.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Implicit Types (p q r : T -> R).

Lemma acceptE p q x : accept_probability N p q x = if p x < q x then p x / q x else if 0 < p x then 1 else 0.
Proof. by []. Qed.

Lemma excessE p q x : excess N p q x = Num.max (p x - q x) 0.
Proof. exact: positive_partE. Qed.

Lemma excess_ge0 p q x : 0 <= excess N p q x.
Proof. by rewrite excessE le_maxr lexx orbT. Qed.

Lemma accept_range p q x : 0 <= p x -> 0 <= accept_probability N p q x <= 1.
Proof.
move=> p0; rewrite acceptE; case: (ltP (p x) (q x)) => [pq | _].
  have q0 := le_lt_trans p0 pq.
  by rewrite divr_ge0 ?(ltW q0) //= ler_pdivr_mulr // mul1r ltW.
by case: ifP => _; rewrite ?lexx ler01.
Qed.

(** A token stays as a draft with mass min(q, p); the masses need not sum to 1. *)
Lemma kept_mass p q x : 0 <= p x -> 0 <= q x -> q x * accept_probability N p q x = Num.min (q x) (p x).
Proof.
move=> p0 q0; rewrite acceptE; case: (ltP (p x) (q x)) => [pq | qp].
  by rewrite mulrCA divff ?mulr1 // gt_eqF // (le_lt_trans p0 pq).
case: ltgtP p0 => // [_ _|p0 _]; first by rewrite mulr1.
by rewrite mulr0; apply/eqP; rewrite eq_le q0 p0 qp.
Qed.

(** What is kept and what is missing make p. *)
Lemma min_excess p q x : Num.min (q x) (p x) + excess N p q x = p x.
Proof.
rewrite excessE; case: (leP (p x) (q x)) => h.
  by rewrite max_r ?subr_le0 // addr0.
by rewrite max_l ?subr_ge0 1?ltW // addrC subrK.
Qed.

Lemma excess_sub p q x : excess N p q x = p x - Num.min (q x) (p x).
Proof. by apply/eqP; rewrite eq_sym subr_eq addrC min_excess. Qed.

(** Drawing from norm((p - q)+) with the mass of the excess gives the excess. *)
Lemma excess_lawE p q x : (\sum_y excess N p q y) * excess_law N V p q x = excess N p q x.
Proof.
rewrite /excess_law total_token /=; case: ltP => [pos | zero].
  by rewrite mulrCA divff ?mulr1 // gt_eqF.
have Z0 : \sum_y excess N p q y = 0.
  by apply/eqP; rewrite eq_le zero sumr_ge0 // => y _; exact: excess_ge0.
rewrite Z0 mul0r; symmetry.
by move/psumr_eq0P: Z0; apply=> // y _; exact: excess_ge0.
Qed.

Lemma E_accept_or_replace a r K :
  E (accept_or_replace N V a r) K = a * K None + (1 - a) * \sum_x r x * K (Some x).
Proof.
rewrite E_bind E_flip E_ret E_bind E_token; congr (_ + _ * _).
by apply: eq_bigr => x _; rewrite E_ret.
Qed.

Lemma E_match p d K : E (match_rule N V p d) K = \sum_z p z * K (if z == d then None else Some z).
Proof. by rewrite E_bind E_token; apply: eq_bigr => z _; rewrite E_ret. Qed.

(** The average of [F] at the token that comes out of [rule] when the draft is drawn from [q]. *)
Definition emitted q (rule : T -> dist R (option T)) (F : T -> R) : R :=
  \sum_d q d * E (rule d) (fun o => F (odflt d o)).

(** [rule] is exact for [p]: the token that comes out has the law [p]. *)
Definition exact_rule p q (rule : T -> dist R (option T)) := forall F, emitted q rule F = \sum_x p x * F x.

(** The masses with which [x] comes out: kept as a draft, and as a replacement. *)
Definition kept_by q (rule : T -> dist R (option T)) x : R := q x * E (rule x) (fun o => (o == None)%:R).
Definition replaced_by q (rule : T -> dist R (option T)) x : R := \sum_d q d * E (rule d) (fun o => (o == Some x)%:R).

(** A kept mass of at most p, and the rest of p as the law of the replacement, make p.  [q] need not sum to 1 here
    by itself; [kept x] is the mass with which [x] stays. *)
Lemma split_exact p q (a : T -> R) r (kept : T -> R) :
  (forall x, q x * a x = kept x) -> (forall x, (\sum_y q y * (1 - a y)) * r x = p x - kept x) ->
  exact_rule p q (fun d => accept_or_replace N V (a d) r).
Proof.
move=> qa rest F; rewrite /emitted.
rewrite (eq_bigr (fun d => kept d * F d + q d * (1 - a d) * \sum_x r x * F x)); last first.
  by move=> d _; rewrite E_accept_or_replace mulrDr !mulrA qa.
rewrite big_split /= -mulr_suml mulr_sumr -big_split; apply: eq_bigr => x _ /=.
by rewrite mulrA rest -mulrDl addrC subrK.
Qed.

Lemma rejected_mass p q : \sum_x p x = 1 -> \sum_x q x = 1 -> (forall x, 0 <= p x) -> (forall x, 0 <= q x) ->
  \sum_x q x * (1 - accept_probability N p q x) = \sum_x excess N p q x.
Proof.
move=> p1 q1 p0 q0; transitivity (\sum_x (q x - Num.min (q x) (p x))).
  by apply: eq_bigr => x _; rewrite mulrBr mulr1 kept_mass.
rewrite sumrB q1 -p1 -sumrB.
by apply: eq_bigr => x _; rewrite excess_sub.
Qed.

(** ** The residual lemma.
    Draw d from q, keep it with probability min(1, p/q), else emit from norm((p - q)+): the law is p.  Zeros of p and of
    q are allowed. *)
Theorem speculative_rule_exact p q : pmf p -> pmf q -> exact_rule p q (speculative_rule N V p q).
Proof.
move=> [p0 p1] [q0 q1]; apply: (@split_exact _ _ _ _ (fun x => Num.min (q x) (p x))) => x; first exact: kept_mass.
by rewrite rejected_mass // excess_lawE excess_sub.
Qed.

(** ** Sample and match.
    The token that comes out is the target's own draw, whatever the drafted token is and wherever it comes from. *)
Theorem match_rule_exact p q : pmf q -> exact_rule p q (match_rule N V p).
Proof.
move=> [_ q1] F; rewrite /emitted.
rewrite (eq_bigr (fun d => q d * \sum_x p x * F x)) -?mulr_suml ?q1 ?mul1r // => d _.
congr (_ * _); rewrite E_match; apply: eq_bigr => z _; congr (_ * _).
by case: eqP => [-> | ].
Qed.

(** ** Dropping unlikely drafts, with the residual that repairs it.
    Drafts that [sure] turns down never stay, and dropped or rejected drafts are replaced from
    norm((p - q 1[sure])+): the law is p, for every choice of [sure]. *)
Theorem drop_rule_exact (sure : T -> bool) p q : pmf p -> pmf q -> exact_rule p q (drop_rule N V sure p q).
Proof.
move=> [p0 p1] [q0 q1]; rewrite /drop_rule.
set kept := fun x => if sure x then q x else 0.
have k0 x : 0 <= kept x by rewrite /kept; case: ifP.
have qa x : q x * (if nonzero N (kept x) then accept_probability N p q x else 0) = Num.min (kept x) (p x).
  rewrite nonzeroE /kept; case: (sure x); last by rewrite eqxx mulr0 min_l.
  by case: eqP => [-> | _] /=; [rewrite mul0r min_l | rewrite kept_mass].
apply: (@split_exact _ _ _ _ (fun x => Num.min (kept x) (p x))) => // x.
have -> : \sum_y q y * (1 - (if nonzero N (kept y) then accept_probability N p q y else 0)) = \sum_y excess N p kept y.
  transitivity (\sum_y (q y - Num.min (kept y) (p y))); first by apply: eq_bigr => y _; rewrite mulrBr mulr1 qa.
  rewrite sumrB q1 -p1 -sumrB; apply: eq_bigr => y _.
  by rewrite excess_sub.
by rewrite excess_lawE excess_sub.
Qed.

Lemma proper_accept_or_replace a r : pmf r -> proper (accept_or_replace N V a r).
Proof.
move=> Hr; apply: proper_bind (proper_flip _) _ => -[]; first exact: proper_ret.
by apply: proper_bind (proper_draw Hr) _ => x; apply: proper_ret.
Qed.

Lemma pmf_excess_law p q : pmf p -> pmf (excess_law N V p q).
Proof.
move=> Hp; rewrite /excess_law total_token /=; case: ltP => // pos; split.
  by move=> x; rewrite divr_ge0 ?excess_ge0 // ltW.
by rewrite -mulr_suml divff // gt_eqF.
Qed.

(** The overlap sum min(p, q), which is 1 - TV(p, q). *)
Definition overlap p q : R := \sum_x Num.min (q x) (p x).

(** ** Acceptance.
    Speculative sampling keeps a drafted token with probability sum min(p, q). *)
Theorem speculative_acceptance p q : pmf p -> pmf q ->
  \sum_d kept_by q (speculative_rule N V p q) d = overlap p q.
Proof.
move=> [p0 _] [q0 _]; apply: eq_bigr => d _; rewrite /kept_by E_accept_or_replace /= mulr1.
by rewrite big1 => [|x _]; rewrite ?mulr0 ?addr0 ?kept_mass.
Qed.

End Theorems.
