(** * K-SEQ: several candidates from one pmf, each with the same small chance. *)
From Lossless Require Import Probability OnePosition Texts Tree.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).

(** Try the candidates in turn, each against the target [r] lowered by [rho]; if none is accepted draw from [owed]. *)
Fixpoint try_alike (rho : R) (r owed : T -> R) (l : seq (T * (T -> R))) : dist R (T * bool) :=
  if l is (d, u) :: l' then
    bind N (flip N (accept_probability N r (fun x => times N rho (u x)) d)) (fun accepted =>
      if accepted then ret N (d, true) else try_alike rho r owed l')
  else bind N (draw N V owed) (fun x => ret N (x, false)).

(** The mass with which one candidate x stays. *)
Definition one_try (rho : R) (r u : T -> R) (x : T) : R :=
  times N (u x) (accept_probability N r (fun y => times N rho (u y)) x).

(** 1 + (1 - beta) + (1 - beta)^2 + ..., [count] terms. *)
Fixpoint tries (beta : R) (count : nat) : R :=
  if count is count'.+1 then plus N (one N) (times N (minus N (one N) beta) (tries beta count')) else zero N.

(** What [count] candidates leave of the target, normalised. *)
Definition leftover (rho : R) (r u : T -> R) (count : nat) : T -> R :=
  let beta := total N V (one_try rho r u) in
  excess_law N V r (fun x => times N (one_try rho r u x) (tries beta count)).

Variable choose_rho : (T -> R) -> (T -> R) -> nat -> R.
Definition k_seq (r : T -> R) (l : seq (T * (T -> R))) : dist R (T * bool) :=
  if l is (_, u) :: _ then
    let rho := choose_rho r u (size l) in try_alike rho r (leftover rho r u (size l)) l
  else bind N (draw N V r) (fun x => ret N (x, false)).

(** K sequences of one drafter: the root has K children, every other node has one. *)
Inductive sequences := Root of nat | Path.
Variable q : seq T -> T -> R.
Definition sequence_sibling (plan : sequences) (c earlier : seq T) : option (T -> R) :=
  if (size earlier < if plan is Root k then k else 1)%N then Some (q c) else None.
Definition sequence_below (_ : sequences) (_ _ : seq T) (_ : T) : sequences := Path.

End Programs.

Arguments one_try : simpl never.
Arguments sequence_sibling : simpl never.

Section Theorems.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).

Section Place.
Variables (rho : R) (r u : T -> R).
Hypotheses (rho0 : 0 < rho) (Hr : pmf r) (Hu : pmf u).
Local Notation m := (one_try N rho r u).
Local Notation beta := (\sum_x m x).

Lemma one_tryE x : m x = Num.min (u x) (r x / rho).
Proof.
have rn : rho != 0 by rewrite gt_eqF.
apply: (mulfI rn); rewrite /one_try /= mulrA (kept_mass (q := fun y => rho * u y)) ?mulr_ge0 ?(ltW rho0) ?Hr.1 ?Hu.1 //.
by rewrite minr_pmulr ?(ltW rho0) // (mulrCA rho) divff // mulr1.
Qed.

Lemma one_try_ge0 x : 0 <= m x.
Proof. by rewrite one_tryE le_minr Hu.1 divr_ge0 ?Hr.1 // ltW. Qed.

Lemma triesS count : tries N beta count.+1 = 1 + (1 - beta) * tries N beta count.
Proof. by []. Qed.

Lemma beta_tries count : beta * tries N beta count = 1 - (1 - beta) ^+ count.
Proof.
elim: count => [|count IH]; first by rewrite /= mulr0 subrr.
by rewrite triesS mulrDr mulr1 mulrCA IH mulrBr mulr1 exprS addrA addrCA subrr addr0.
Qed.

(** The validity of rho: no token is accepted more often than the target allows. *)
Lemma valid_rho count : 1 - (1 - beta) ^+ count <= rho * beta -> forall x, m x * tries N beta count <= r x.
Proof.
move=> valid x; have [zero|nz] := eqVneq beta 0.
  have /psumr_eq0P all0 : beta = 0 by [].
  by rewrite all0 ?mul0r ?Hr.1 // => y _; apply: one_try_ge0.
have bpos : 0 < beta by rewrite lt_neqAle eq_sym nz sumr_ge0 // => y _; apply: one_try_ge0.
have le_rho : tries N beta count <= rho by rewrite -(ler_pmul2l bpos) beta_tries (mulrC beta).
have : m x <= r x / rho by rewrite one_tryE le_minl lexx orbT.
rewrite ler_pdivl_mulr // => mr; apply: le_trans mr.
by rewrite ler_wpmul2l // one_try_ge0.
Qed.

(** Draw [count] candidates independently. *)
Fixpoint alike count : dist R (seq (T * (T -> R))) :=
  if count is count'.+1 then bind N (draw N V u) (fun d => bind N (alike count') (fun l => ret N ((d, u) :: l)))
  else ret N [::].

Lemma E_alikeS count K : E (alike count.+1) K = \sum_d u d * E (alike count) (fun l => K ((d, u) :: l)).
Proof.
rewrite /= E_bind E_token; apply: eq_bigr => d _; rewrite E_bind; congr (_ * _); apply: E_ext => l.
by rewrite E_ret.
Qed.

Lemma proper_alike count : proper (alike count).
Proof.
elim: count => [|count IH] a; first by rewrite E_ret.
by rewrite E_alikeS (eq_bigr (fun d => u d * a)) -?mulr_suml ?Hu.2 ?mul1r // => d _; rewrite IH.
Qed.

Lemma E_try_alike owed count F :
  E (alike count) (fun l => E (try_alike N V rho r owed l) (fun xa => F xa.1))
  = tries N beta count * (\sum_x m x * F x) + (1 - beta) ^+ count * (\sum_x owed x * F x).
Proof.
elim: count => [|count IH].
  rewrite E_ret /= E_bind E_token mul0r add0r expr0 mul1r; apply: eq_bigr => x _.
  by rewrite E_ret.
rewrite E_alikeS triesS exprS; set rest := E _ _ in IH.
transitivity (\sum_d (m d * F d + (u d - m d) * rest)).
  apply: eq_bigr => d _; rewrite /one_try /=.
  set a := accept_probability N r _ d.
  transitivity (u d * E (alike count) (fun l => a * F d + (1 - a) * E (try_alike N V rho r owed l) (fun xa => F xa.1))).
    by congr (_ * _); apply: E_ext => l; rewrite E_bind E_flip E_ret.
  by rewrite E_add proper_alike E_scale -/rest mulrDr !mulrA mulrBr mulr1.
rewrite big_split -mulr_suml sumrB Hu.2 /= IH; set S := \sum_x m x * F x; set O := \sum_x owed x * F x.
by rewrite [in RHS](mulrDl 1) mul1r mulrDr !mulrA addrA.
Qed.

(** ** K-SEQ at one place: exact for every valid rho. *)
Theorem try_alike_exact count : 1 - (1 - beta) ^+ count <= rho * beta -> forall F,
  E (alike count) (fun l => E (try_alike N V rho r (leftover N V rho r u count) l) (fun xa => F xa.1))
  = \sum_x r x * F x.
Proof.
move=> /valid_rho fits F; rewrite E_try_alike !mulr_sumr -big_split; apply: eq_bigr => x _ /=.
set taken := fun y => m y * tries N beta count.
have excessE' y : excess N r taken y = r y - taken y by rewrite excessE max_l // subr_ge0 fits.
have mass : (1 - beta) ^+ count = \sum_y excess N r taken y.
  rewrite (eq_bigr _ (fun y _ => excessE' y)) sumrB Hr.2 -mulr_suml beta_tries.
  by rewrite opprB addrCA subrr addr0.
have -> : leftover N V rho r u count = excess_law N V r taken.
  by rewrite /leftover total_token.
rewrite (mulrA (tries N beta count) (m x)) (mulrA (_ ^+ _) (excess_law _ _ _ _ x)) -mulrDl; congr (_ * _).
by rewrite mass excess_lawE excessE' /taken (mulrC (tries _ _ _)) addrC subrK.
Qed.
End Place.

Variable width : nat.
Variable p q : seq T -> T -> R.
Hypotheses (Hp : forall c, pmf (p c)) (Hq : forall c, pmf (q c)).
Variable choose_rho : (T -> R) -> (T -> R) -> nat -> R.
(** The number that is searched for is positive and valid; K itself is. *)
Hypothesis rho_valid : forall r u count, pmf r -> pmf u ->
  0 < choose_rho r u count /\
  1 - (1 - \sum_x one_try N (choose_rho r u count) r u x) ^+ count
    <= choose_rho r u count * \sum_x one_try N (choose_rho r u count) r u x.

Definition children (plan : sequences) : nat := minn width (if plan is Root k then k else 1%N).
Local Notation candidates := (candidates N V (sequence_sibling q) (sequence_below (T := T)) (@undrawn R T sequences) width).

Lemma siblings_alike plan c : forall w earlier K, 
  E (siblings N V (sequence_sibling q) (sequence_below (T := T)) (@undrawn R T sequences) w plan c earlier) (fun l => K (map fst l))
  = E (alike (q c) (minn w ((if plan is Root k then k else 1%N) - size earlier))) K.
Proof.
elim=> [|w IH] earlier K; first by rewrite min0n !E_ret.
case e: (sequence_sibling q plan c earlier) => [u|]; move: (e); rewrite {1}/sequence_sibling; case: ltnP => // lt.
  case=> uE; rewrite (E_siblingsS _ _ _ _ e) -uE -(subnSK lt) minnSS E_alikeS; apply: eq_bigr => d _.
  by rewrite E_ret (IH (rcons earlier d) (fun l => K ((d, q c) :: l))) size_rcons.
move=> _; rewrite /= e !E_ret; have /eqP -> := lt.
by rewrite minn0 E_ret.
Qed.

Lemma alike_cat u k1 k2 K : E (alike u k1) (fun l1 => E (alike u k2) (fun l2 => K (l1 ++ l2))) = E (alike u (k1 + k2)) K.
Proof.
elim: k1 K => [|k1 IH] K; first by rewrite E_ret.
rewrite addSn !E_alikeS; apply: eq_bigr => d _; congr (_ * _).
by rewrite -(IH (fun l => K ((d, u) :: l))).
Qed.

Lemma candidates_alike plans c : forall K,
  E (candidates plans c) (fun l => K (map fst l)) = E (alike (q c) (sumn (map children plans))) K.
Proof.
elim: plans => [|plan plans IH] K; first by rewrite !E_ret.
rewrite E_candidates_cons /= -alike_cat.
transitivity (E (siblings N V (sequence_sibling q) (sequence_below (T := T)) (@undrawn R T sequences) width plan c [::])
   (fun l => E (alike (q c) (sumn (map children plans))) (fun l2 => K (map fst l ++ l2)))).
  by apply: E_ext => l; rewrite -IH; apply: E_ext => l'; rewrite map_cat.
by rewrite (siblings_alike plan c width [::] (fun l1 => E _ (fun l2 => K (l1 ++ l2)))) subn0.
Qed.

(** ** K-SEQ is an exact selection for K sequences of one drafter, at every place and for every valid rho. *)
Theorem k_seq_exact : exact_selection (sequence_sibling q) (sequence_below (T := T)) width p (k_seq N V choose_rho).
Proof.
move=> plans c F.
rewrite (candidates_alike plans c (fun l => E (choose N V (k_seq N V choose_rho) (p c) l) (fun xa => F xa.1))).
case: (sumn _) => [|count]; first by rewrite E_ret /= E_bind E_token; apply: eq_bigr => x _; rewrite E_ret.
have [rho0 valid] := rho_valid count.+1 (Hp c) (Hq c).
rewrite -(try_alike_exact rho0 (Hp c) (Hq c) valid F) !E_alikeS; apply: eq_bigr => d _; congr (_ * _).
suff sizes k : forall K L : seq (T * (T -> R)) -> R, (forall l, size l = k -> K l = L l) -> E (alike (q c) k) K = E (alike (q c) k) L.
  by apply: sizes => l sl; rewrite /choose /k_seq [size (_ :: _)]/= sl.
elim: k => [|k IH] K L KL; first by rewrite !E_ret KL.
by rewrite !E_alikeS; apply: eq_bigr => x _; congr (_ * _); apply: IH => l sl; apply: KL; rewrite /= sl.
Qed.

End Theorems.
