(** * SpecInfer's drawn order: independent candidates, tried in any order that does not look at them. *)
From Lossless Require Import Probability OnePosition Texts Tree Selection.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).
Variable order : nat -> dist R (seq nat).   (* the order of so many candidates *)

Definition in_order A (o : seq nat) (l : seq A) : seq A := pmap (fun i => ohead (drop i l)) o.

Definition try_in_drawn_order (r : T -> R) (l : seq (T * (T -> R))) : dist R (T * bool) :=
  bind N (order (size l)) (fun o => try_in_turn N V r (in_order o l)).

(** SpecInfer's order: the next candidate is drawn evenly from those that are left. *)
Fixpoint number k : R := if k is k'.+1 then plus N (number k') (one N) else zero N.
Fixpoint even_order fuel (left : seq nat) : dist R (seq nat) :=
  if fuel is fuel'.+1 then
    if left is [::] then ret N [::] else
    bind N (draw N left (fun _ => over N (one N) (number (size left)))) (fun i =>
    bind N (even_order fuel' (rem i left)) (fun o => ret N (i :: o)))
  else ret N [::].

End Programs.

Section Theorems.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (Plan : Type) (sibling : Plan -> seq T -> seq T -> option (T -> R)).
Variable below : Plan -> seq T -> seq T -> T -> Plan.
Hypothesis Hsibling : forall plan c earlier u, sibling plan c earlier = Some u -> pmf u.
(** Candidates are independent: the pmf of a sibling depends on how many there are before it, not on which. *)
Hypothesis independent : forall plan c e1 e2, size e1 = size e2 -> sibling plan c e1 = sibling plan c e2.
Variable width : nat.
Variable p : seq T -> T -> R.
Hypothesis Hp : forall c, pmf (p c).
Variable order : nat -> dist R (seq nat).
(** Every order that occurs names each candidate once; the weights sum to 1. *)
Hypothesis Horder : forall n K L, (forall o, perm_eq o (iota 0 n) -> K o = L o) -> E (order n) K = E (order n) L.
Hypothesis proper_order : forall n, proper (order n).
Local Notation candidates := (candidates N V sibling below (@undrawn R T Plan) width).
Local Notation siblings := (siblings N V sibling below (@undrawn R T Plan)).

(** The pmfs of the candidates of a place; the tokens in [filler] stand for those that are not looked at. *)
Fixpoint sibling_pmfs w plan c (earlier : seq T) (d : T) : seq (T -> R) :=
  if w is w'.+1 then if sibling plan c earlier is Some u then u :: sibling_pmfs w' plan c (rcons earlier d) d else [::]
  else [::].

Definition candidate_pmfs plans c d : seq (T -> R) := flatten [seq sibling_pmfs width plan c [::] d | plan <- plans].

Lemma siblings_independent d w plan c : forall earlier K,
  E (siblings w plan c earlier) (fun l => K (map fst l))
  = E (draw_all N V (sibling_pmfs w plan c earlier d)) (fun ts => K (zip ts (sibling_pmfs w plan c earlier d))).
Proof.
have same w' : forall e1 e2, size e1 = size e2 -> sibling_pmfs w' plan c e1 d = sibling_pmfs w' plan c e2 d.
  elim: w' => [|w' IH] e1 e2 sizes //=; rewrite (independent plan c sizes); case: (sibling _ _ _) => // u.
  by congr (_ :: _); apply: IH; rewrite !size_rcons sizes.
elim: w => [|w IH] earlier K; first by rewrite !E_ret.
case e: (sibling plan c earlier) => [u|]; last by rewrite /= e !E_ret.
rewrite (E_siblingsS _ _ _ _ e) [sibling_pmfs _ _ _ _ _]/= e E_draw_all_cons; apply: eq_bigr => x _.
rewrite E_ret (IH (rcons earlier x) (fun l => K ((x, u) :: l))) (same w (rcons earlier x) (rcons earlier d)) //.
by rewrite !size_rcons.
Qed.

Lemma candidates_independent d plans c : forall K,
  E (candidates plans c) (fun l => K (map fst l))
  = E (draw_all N V (candidate_pmfs plans c d)) (fun ts => K (zip ts (candidate_pmfs plans c d))).
Proof.
elim: plans => [|plan plans IH] K; first by rewrite /= !E_ret.
rewrite E_candidates_cons [candidate_pmfs _ _ _]/= E_draw_all_cat -/(candidate_pmfs plans c d).
rewrite (E_ext _ (L := fun l => E (draw_all N V (candidate_pmfs plans c d)) (fun ts => K (map fst l ++ zip ts (candidate_pmfs plans c d))))); last first.
  by move=> l; rewrite -(IH (fun m => K (map fst l ++ m))); apply: E_ext => l'; rewrite map_cat.
rewrite (siblings_independent d width plan c [::] (fun m => E _ (fun ts => K (m ++ zip ts _)))).
apply: draw_all_size => ts1 sizes; apply: E_ext => ts2.
by rewrite zip_cat.
Qed.

Lemma in_order_cat A o1 o2 (l : seq A) : in_order (o1 ++ o2) l = in_order o1 l ++ in_order o2 l.
Proof. exact: pmap_cat. Qed.

Lemma size_in_order A B o (l : seq A) (m : seq B) : size l = size m -> size (in_order o l) = size (in_order o m).
Proof.
move=> sizes; elim: o => //= i o IH.
have : size (drop i l) = size (drop i m) by rewrite !size_drop sizes.
by case: (drop i l) (drop i m) => [|x l'] [|y m'] //= _; rewrite IH.
Qed.

Lemma in_order_iota A (l : seq A) : in_order (iota 0 (size l)) l = l.
Proof.
suff all_from k : in_order (iota k (size l - k)) l = drop k l by rewrite -[X in iota _ X]subn0 all_from drop0.
elim: (size l - k)%N {-2}k (erefl (size l - k)%N) => [|n IH] k' e; first by rewrite e drop_oversize // -subn_eq0 e.
rewrite e /=; have lt : (k' < size l)%N by rewrite -subn_gt0 e.
have e' : (size l - k'.+1)%N = n by rewrite subnS e.
case: {-1}(drop k' l) (erefl (drop k' l)) => [|x l'] dropE.
  by move: (congr1 size dropE); rewrite size_drop e.
rewrite /=; congr (_ :: _); rewrite -{1}e' IH //.
by rewrite -addn1 addnC -drop_drop dropE /= drop0.
Qed.

Lemma swap_parts A (a1 a2 a3 : seq A) : let m := a1 ++ a2 ++ a3 in
  take (size a2) (drop (size a1) m) ++ take (size a1) m ++ drop (size a1 + size a2) m = a2 ++ a1 ++ a3.
Proof. by rewrite /= addnC -drop_drop !drop_size_cat // !take_size_cat. Qed.

(** Independent draws in another order are independent draws from the pmfs in that order. *)
Lemma draws_in_order us : forall o, perm_eq o (iota 0 (size us)) -> forall G,
  E (draw_all N V us) (fun l => G (in_order o l)) = E (draw_all N V (in_order o us)) G.
Proof.
pose P o := forall G, E (draw_all N V us) (fun l => G (in_order o l)) = E (draw_all N V (in_order o us)) G.
have base : P (iota 0 (size us)) by move=> G; rewrite in_order_iota; apply: draw_all_size => l sl; rewrite -sl in_order_iota.
move=> o; rewrite perm_sym => perm; apply: (catCA_perm_ind (P := P)) perm base => s1 s2 s3 IH G; rewrite !in_order_cat.
  pose k1 := size (in_order s1 us); pose k2 := size (in_order s2 us).
  pose back (m : seq T) := take k2 (drop k1 m) ++ take k1 m ++ drop (k1 + k2) m.
  have := IH (fun m => G (back m)); rewrite !in_order_cat.
  rewrite (draw_all_size (L := fun l => G (in_order (s2 ++ s1 ++ s3) l))) => [|l sl]; last first.
    rewrite !in_order_cat /back /k1 /k2 -(size_in_order s1 sl) -(size_in_order s2 sl).
    by rewrite swap_parts.
  move=> ->; rewrite !E_draw_all_cat.
  transitivity (E (draw_all N V (in_order s1 us)) (fun l1 => E (draw_all N V (in_order s2 us)) (fun l2 => E (draw_all N V (in_order s3 us)) (fun l3 => G (l2 ++ l1 ++ l3))))).
    apply: draw_all_size => l1 z1; rewrite E_draw_all_cat; apply: draw_all_size => l2 z2; apply: E_ext => l3.
    by rewrite /back /k1 /k2 -z1 -z2 swap_parts.
  by rewrite E_exchange; apply: E_ext => l2; rewrite E_draw_all_cat.
Qed.

(** Trying in turn is exact for independent candidates, whatever is owed. *)
Lemma E_try_independent us : all_pmfs us -> forall owed F, pmf owed ->
  E (draw_all N V us) (fun ts => E (try_in_turn N V owed (zip ts us)) (fun xa => F xa.1)) = \sum_x owed x * F x.
Proof.
elim: us => [|u us IH] /= Hus owed F Ho.
  by rewrite E_ret /= E_bind E_token; apply: eq_bigr => x _; rewrite E_ret.
case: Hus => Hu Hus; rewrite E_draw_all_cons -(speculative_rule_exact Ho Hu F); apply: eq_bigr => d _; congr (_ * _).
rewrite E_accept_or_replace -(IH Hus _ _ (pmf_excess_law u Ho)) -(E_affine _ _ _ (proper_draw_all Hus)).
by apply: E_ext => ts; rewrite -E_try_cons.
Qed.

Lemma all_pmfs_in_order (us : seq (T -> R)) o : all_pmfs us -> all_pmfs (in_order o us).
Proof.
move=> Hus; elim: o => //= i o IH; have : all_pmfs (drop i us).
  by elim: us i Hus {IH} => [|u us IHus] [|i] //= [Hu Hus]; exact: IHus.
by case: (drop i us) => [|u rest] //= [Hu _]; split.
Qed.

(** ** SpecInfer: recursive rejection in any drawn order. *)
Theorem drawn_order_exact (d : T) : exact_selection sibling below width p (try_in_drawn_order N V order).
Proof.
move=> plans c F.
rewrite (candidates_independent d plans c (fun l => E (choose N V (try_in_drawn_order N V order) (p c) l) (fun xa => F xa.1))).
set us := candidate_pmfs plans c d.
have Hus : all_pmfs us.
  rewrite /us /candidate_pmfs; elim: plans {us} => //= plan plans IH.
  have cat_pmfs : forall us1 us2 : seq (T -> R), all_pmfs us1 -> all_pmfs us2 -> all_pmfs (us1 ++ us2).
    by elim=> [|u us1 IHu] us2 //= [Hu H1] H2; split=> //; exact: IHu.
  apply: cat_pmfs IH; elim: width [::] => //= w IHw earlier; case e: (sibling plan c earlier) => [u|] //=.
  by split; [exact: Hsibling e | exact: IHw].
transitivity (E (order (size us)) (fun o => E (draw_all N V us) (fun ts => E (try_in_turn N V (p c) (in_order o (zip ts us))) (fun xa => F xa.1)))).
  rewrite E_exchange; apply: draw_all_size => ts sizes; case e: us sizes => [|u us'].
    have owedE : E (bind N (draw N V (p c)) (fun x => ret N (x, false))) (fun xa => F xa.1) = \sum_x p c x * F x.
      by rewrite E_bind E_token; apply: eq_bigr => x _; rewrite E_ret.
    case: ts => // _; transitivity (\sum_x p c x * F x); first exact: owedE.
    rewrite -[LHS](proper_order (size (Nil (T -> R)))); apply: E_ext => o.
    have -> : in_order o (zip [::] [::]) = Nil (T * (T -> R)) by elim: o => //= i o ->; case: i.
    exact: esym owedE.
  by case: ts => [|t ts] //= [sizes]; rewrite /try_in_drawn_order E_bind /= size_zip sizes minnn.
rewrite -[RHS](proper_order (size us)); apply: Horder => o perm.
have zipE (ts : seq T) : size ts = size us -> in_order o (zip ts us) = zip (in_order o ts) (in_order o us).
  move=> sizes; elim: o {perm} => //= i o IH; rewrite (_ : drop i (zip ts us) = zip (drop i ts) (drop i us)).
    have : size (drop i ts) = size (drop i us) by rewrite !size_drop sizes.
    by case: (drop i ts) (drop i us) => [|t ts'] [|u us'] //= _; rewrite IH.
  by elim: ts us i {sizes IH Hus} => [|t ts IHt] [|u us'] [|i] //=; case: (drop i _).
rewrite (draw_all_size (L := fun ts => E (try_in_turn N V (p c) (zip (in_order o ts) (in_order o us))) (fun xa => F xa.1))) => [|ts sizes]; last by rewrite zipE.
rewrite (draws_in_order perm (fun l => E (try_in_turn N V (p c) (zip l (in_order o us))) (fun xa => F xa.1))).
exact: E_try_independent (all_pmfs_in_order o Hus) _ _ (Hp c).
Qed.

End Theorems.

(** SpecInfer's order names each candidate once, and its weights sum to 1. *)
Section EvenOrder.
Variable R : realFieldType.
Local Notation N := (field_numbers R).

Lemma numberE k : number N k = k%:R.
Proof. by elim: k => //= k ->; rewrite -[in RHS]addn1 natrD. Qed.

Lemma even_order_names_all fuel : forall left K L, (size left <= fuel)%N ->
  (forall o, perm_eq o left -> K o = L o) -> E (even_order N fuel left) K = E (even_order N fuel left) L.
Proof.
elim: fuel => [|fuel IH] [|i left] K L // le KL; try by rewrite /= !E_ret KL.
rewrite /even_order -/even_order !E_bind !E_draw; apply: eq_big_seq => j jin; congr (_ * _).
rewrite !E_bind; apply: IH => [|o perm]; first by rewrite size_rem.
rewrite !E_ret; apply: KL; rewrite perm_sym; apply: perm_trans (perm_to_rem jin) _.
by rewrite perm_cons perm_sym.
Qed.

Lemma proper_even_order fuel : forall left, proper (even_order N fuel left).
Proof.
elim: fuel => [|fuel IH] [|i left] c; try by rewrite /= E_ret.
rewrite /even_order -/even_order E_bind E_draw.
rewrite (eq_bigr (fun=> one N / number N (size (i :: left)) * c)) => [|j _]; last first.
  by rewrite E_bind (E_ext _ (L := fun=> c)) ?IH // => o; rewrite E_ret.
have -> : one N / number N (size (i :: left)) = (size (i :: left))%:R^-1 by rewrite numberE /= mul1r.
by rewrite big_const_seq count_predT iter_addr_0 -mulrnAl -mulr_natr mulVf ?mul1r // pnatr_eq0.
Qed.
End EvenOrder.
