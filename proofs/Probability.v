(** * Programs that draw, and what they compute on average.

    A program is a finite list of weighted outcomes.  [draw] samples a token from a pmf, [flip] tosses a coin, [bind]
    runs one program after another.  Programs are written over any type of numbers with +, -, *, / and <.  The theorems
    take the numbers to be an ordered field; the extracted code takes them to be rationals.  Nothing here is special to
    speculative decoding. *)
From mathcomp Require Export all_ssreflect all_algebra.
#[export] Set Implicit Arguments.
#[export] Unset Strict Implicit.
#[export] Unset Printing Implicit Defensive.
Export Order.TTheory GRing.Theory Num.Theory.
Open Scope ring_scope.

Record numbers (R : Type) := Numbers {
  zero : R; one : R; plus : R -> R -> R; minus : R -> R -> R; times : R -> R -> R; over : R -> R -> R;
  less : R -> R -> bool }.

Section Programs.
Variables (R : Type) (N : numbers R).

(** A program that returns an [A]: its outcomes, each with its weight. *)
Definition dist (A : Type) := seq (R * A).

Definition nonzero (w : R) := less N (zero N) w || less N w (zero N).

Definition ret A (a : A) : dist A := [:: (one N, a)].

Definition bind A B (d : dist A) (k : A -> dist B) : dist B :=
  flatten [seq [seq (times N wa.1 vb.1, vb.2) | vb <- k wa.2] | wa <- d].

(** Outcomes of weight zero do not occur. *)
Definition possible A (d : dist A) : dist A := [seq wa <- d | nonzero wa.1].

(** Draw a token of the vocabulary [V] from the pmf [p]. *)
Definition draw T (V : seq T) (p : T -> R) : dist T := possible [seq (p x, x) | x <- V].

(** Draw one token from each of several pmfs, independently. *)
Fixpoint draw_all T (V : seq T) (us : seq (T -> R)) : dist (seq T) :=
  if us is u :: us' then bind (draw V u) (fun x => bind (draw_all V us') (fun l => ret (x :: l))) else ret [::].

(** Toss a coin that shows [true] with probability [a]. *)
Definition flip (a : R) : dist bool := possible [:: (a, true); (minus N (one N) a, false)].

Definition total T (V : seq T) (f : T -> R) : R := foldr (plus N) (zero N) [seq f x | x <- V].

Definition positive_part (w : R) : R := if less N (zero N) w then w else zero N.

Definition minimum (v w : R) : R := if less N v w then v else w.

End Programs.

Notation "x <-- d ; k" := (bind _ d (fun x => k)) (at level 100, d at next level, k at level 200, right associativity,
  only parsing).

(** The numbers of the theorems: an ordered field. *)
Definition field_numbers (R : realFieldType) : numbers R :=
  Numbers 0 1 +%R (fun x y => x - y) *%R (fun x y => x / y) (fun x y => x < y).

Section Averages.
Variable R : realFieldType.
Local Notation N := (field_numbers R).

(** The average of [K] over the outcomes of a program. *)
Definition E A (d : dist R A) (K : A -> R) : R := \sum_(wa <- d) wa.1 * K wa.2.

(** Two programs with the same average of every function have the same law. *)
Definition same_law A (d e : dist R A) := forall K, E d K = E e K.

(** The probability of one outcome. *)
Definition Pr (A : eqType) (d : dist R A) (a : A) : R := E d (fun b => (b == a)%:R).

Lemma same_law_Pr (A : eqType) (d e : dist R A) : same_law d e -> forall a, Pr d a = Pr e a.
Proof. by move=> de a; apply: de. Qed.

Lemma E_ext A (d : dist R A) K L : (forall a, K a = L a) -> E d K = E d L.
Proof. by move=> KL; apply: eq_bigr => wa _; rewrite KL. Qed.

Lemma E_ret A (a : A) K : E (ret N a) K = K a.
Proof. by rewrite /E big_seq1 mul1r. Qed.

Lemma E_bind A B (d : dist R A) (k : A -> dist R B) K : E (bind N d k) K = E d (fun a => E (k a) K).
Proof.
rewrite /E big_flatten big_map; apply: eq_bigr => wa _.
by rewrite big_map mulr_sumr; apply: eq_bigr => vb _; rewrite mulrA.
Qed.

Lemma nonzeroE (w : R) : nonzero N w = (w != 0).
Proof. by rewrite /nonzero /= orbC neq_lt. Qed.

Lemma E_possible A (d : dist R A) K : E (possible N d) K = E d K.
Proof.
rewrite /E big_filter big_mkcond /=; apply: eq_bigr => wa _.
by rewrite nonzeroE; case: eqP => //= ->; rewrite mul0r.
Qed.

Lemma E_draw T (V : seq T) (p : T -> R) K : E (draw N V p) K = \sum_(x <- V) p x * K x.
Proof. by rewrite E_possible /E big_map. Qed.

Lemma E_flip a K : E (flip N a) K = a * K true + (1 - a) * K false.
Proof. by rewrite E_possible /E big_cons big_seq1. Qed.

Lemma totalE T (V : seq T) (f : T -> R) : total N V f = \sum_(x <- V) f x.
Proof. by rewrite /total foldrE big_map. Qed.

Lemma positive_partE (w : R) : positive_part N w = Num.max w 0.
Proof. by rewrite /positive_part /=; case: ltgtP => // ->. Qed.

Lemma minimumE (v w : R) : minimum N v w = Num.min v w.
Proof. by rewrite /minimum /=; case: ltgtP => // ->. Qed.

(** Averages are linear, and two programs that do not depend on each other may run in either order. *)
Lemma E_add A (d : dist R A) K L : E d (fun a => K a + L a) = E d K + E d L.
Proof. by rewrite /E -big_split; apply: eq_bigr => wa _; rewrite mulrDr. Qed.

Lemma E_sum A (I : Type) (r : seq I) (d : dist R A) (G : I -> A -> R) :
  E d (fun a => \sum_(i <- r) G i a) = \sum_(i <- r) E d (G i).
Proof.
rewrite /E exchange_big; apply: eq_bigr => wa _; rewrite mulr_sumr.
by apply: eq_bigr => i _.
Qed.

Lemma E_scale A (d : dist R A) c K : E d (fun a => c * K a) = c * E d K.
Proof. by rewrite /E mulr_sumr; apply: eq_bigr => wa _; rewrite mulrCA. Qed.

Lemma E_exchange A B (d : dist R A) (e : dist R B) G :
  E d (fun a => E e (fun b => G a b)) = E e (fun b => E d (fun a => G a b)).
Proof.
rewrite /E (eq_bigr (fun wa => \sum_(vb <- e) wa.1 * (vb.1 * G wa.2 vb.2))); last by move=> wa _; rewrite mulr_sumr.
rewrite exchange_big; apply: eq_bigr => vb _ /=; rewrite mulr_sumr.
by apply: eq_bigr => wa _; rewrite mulrCA.
Qed.

(** The weights of a program sum to 1. *)
Definition proper A (d : dist R A) := forall c : R, E d (fun=> c) = c.

Lemma proper_ret A (a : A) : proper (ret N a).
Proof. by move=> c; rewrite E_ret. Qed.

Lemma proper_bind A B (d : dist R A) (k : A -> dist R B) : proper d -> (forall a, proper (k a)) -> proper (bind N d k).
Proof. by move=> dp kp c; rewrite E_bind (E_ext _ (fun a => kp a c)). Qed.

Lemma proper_flip a : proper (flip N a).
Proof. by move=> c; rewrite E_flip -mulrDl addrC subrK mul1r. Qed.

End Averages.

Section Vocabulary.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).

(** A pmf: probabilities of at least 0 that sum to 1. *)
Definition pmf (p : T -> R) := (forall x, 0 <= p x) /\ \sum_x p x = 1.

(** The whole vocabulary, once each. *)
Definition vocabulary : seq T := enum T.

Lemma E_token (p : T -> R) K : E (draw N vocabulary p) K = \sum_x p x * K x.
Proof. by rewrite E_draw big_enum. Qed.

Lemma total_token (f : T -> R) : total N vocabulary f = \sum_x f x.
Proof. by rewrite totalE big_enum. Qed.

Lemma proper_draw p : pmf p -> proper (draw N vocabulary p).
Proof. by move=> [_ p1] c; rewrite E_token -mulr_suml p1 mul1r. Qed.

(** Independent draws: one after the other, in parts, and one of them alone. *)
Lemma E_draw_all_cons u us K :
  E (draw_all N vocabulary (u :: us)) K = \sum_x u x * E (draw_all N vocabulary us) (fun l => K (x :: l)).
Proof.
rewrite /= E_bind E_token; apply: eq_bigr => x _; rewrite E_bind; congr (_ * _).
by apply: E_ext => l; rewrite E_ret.
Qed.

Lemma E_draw_all_cat us1 us2 : forall K,
  E (draw_all N vocabulary (us1 ++ us2)) K
  = E (draw_all N vocabulary us1) (fun l1 => E (draw_all N vocabulary us2) (fun l2 => K (l1 ++ l2))).
Proof.
elim: us1 => [|u us1 IH] K; first by rewrite E_ret.
by rewrite cat_cons !E_draw_all_cons; apply: eq_bigr => x _; rewrite IH.
Qed.

Lemma draw_all_size us : forall K L : seq T -> R, (forall l, size l = size us -> K l = L l) ->
  E (draw_all N vocabulary us) K = E (draw_all N vocabulary us) L.
Proof.
elim: us => [|u us IH] K L KL; first by rewrite !E_ret KL.
by rewrite !E_draw_all_cons; apply: eq_bigr => x _; congr (_ * _); apply: IH => l sl; rewrite KL //= sl.
Qed.

Definition all_pmfs (us : seq (T -> R)) : Prop := foldr (fun u rest => pmf u /\ rest) True us.

Lemma proper_draw_all us : all_pmfs us -> proper (draw_all N vocabulary us).
Proof.
elim: us => [|u us IH] /=; first by move=> _ c; rewrite E_ret.
case=> Hu Hus c; rewrite E_draw_all_cons (eq_bigr (fun x => u x * c)) => [|x _]; last by rewrite IH.
by rewrite -mulr_suml Hu.2 mul1r.
Qed.

(** One of several independent draws has its own law. *)
Lemma E_draw_all_at us F fail : all_pmfs us -> forall i,
  E (draw_all N vocabulary us) (fun l => if drop i l is x :: _ then F x else fail)
  = if drop i us is u :: _ then \sum_x u x * F x else fail.
Proof.
elim: us => [|u us IH] /=; first by move=> _ i; rewrite E_ret.
case=> Hu Hus [|i]; rewrite E_draw_all_cons.
  by apply: eq_bigr => x _; rewrite /= (proper_draw_all Hus).
rewrite (eq_bigr (fun x => u x * (if drop i us is v :: _ then \sum_y v y * F y else fail))) => [|x _]; last by rewrite -IH.
by rewrite -mulr_suml Hu.2 mul1r.
Qed.

(** The pmf of a deterministic drafter: all its mass on one token. *)
Definition point_mass (y : T) : T -> R := fun x => (x == y)%:R.

Lemma sum_point_mass (y : T) (F : T -> R) : \sum_x point_mass y x * F x = F y.
Proof.
by rewrite (bigD1 y) //= /point_mass eqxx mul1r big1 ?addr0 // => x /negbTE->; rewrite mul0r.
Qed.

Lemma pmf_point_mass (y : T) : pmf (point_mass y).
Proof.
split; first by move=> x; rewrite /point_mass ler0n.
by rewrite (eq_bigr (fun x => point_mass y x * 1)) ?sum_point_mass // => x _; rewrite mulr1.
Qed.

End Vocabulary.
