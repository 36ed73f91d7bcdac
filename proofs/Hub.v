(** * SpecHub: two candidates, one of them always the drafter's top token.

    The pairs are (i, a) and (a, i) with a the top token.  Four steps move mass from pairs to tokens: the other token of a
    pair first, then a.  Each step moves as much as both sides have, so what is left of the pairs is what p has left. *)
From Lossless Require Import Probability OnePosition Texts Tree Selection.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).
Variables (q : seq T -> T -> R) (top : (T -> R) -> T).

Definition off (a : T) (u : T -> R) : T -> R := fun x => if x == a then zero N else u x.
Definition only (a : T) : T -> R := fun x => if x == a then one N else zero N.

(** A token of q first; then its top token a, or, if a was drawn, a second token from q without a. *)
Definition hub_sibling (_ : unit) (c earlier : seq T) : option (T -> R) :=
  let a := top (q c) in
  let mass := total N V (off a (q c)) in
  match earlier with
  | [::] => Some (q c)
  | [:: x] => if x == a then if less N (zero N) mass then Some (fun y => over N (off a (q c) y) mass) else None else Some (only a)
  | _ => None
  end.
Definition hub_below (_ : unit) (_ _ : seq T) (_ : T) : unit := tt.

(** min(1, mass / proposed), 0 where nothing is proposed. *)
Definition over_proposed (mass proposed : R) : R :=
  if less N (zero N) proposed then if less N mass proposed then over N mass proposed else one N else zero N.

Definition accept_else (a : R) (x : T) (otherwise : dist R (T * bool)) : dist R (T * bool) :=
  bind N (flip N a) (fun accepted => if accepted then ret N (x, true) else otherwise).

Section Pair.
Variables (r u : T -> R).
Let a := top u.
Let rest := total N V (off a u).
Definition first_pairs : T -> R := off a u.
Definition second_pairs : T -> R := fun x => if less N (zero N) rest then times N (u a) (over N (off a u x) rest) else off a u x.
Definition others : T -> R := off a r.
Definition others_left : T -> R := excess N others first_pairs.
Definition first_left : R := total N V (excess N first_pairs others).
Definition second_left : R := if less N (zero N) rest then total N V (excess N second_pairs others_left) else u a.
Definition hub_left : R := positive_part N (minus N (r a) second_left).
Definition hub_owed : T -> R := fun x =>
  if x == a then positive_part N (minus N hub_left first_left) else excess N others_left second_pairs x.
Definition hub_residual : T -> R :=
  let mass := total N V hub_owed in if less N (zero N) mass then (fun x => over N (hub_owed x) mass) else r.
End Pair.

(** The four steps. *)
Definition through_the_hub (r : T -> R) (l : seq (T * (T -> R))) : dist R (T * bool) :=
  if l is (x, u) :: later then
    let a := top u in
    let residual := bind N (draw N V (hub_residual r u)) (fun y => ret N (y, false)) in
    let third := accept_else (over_proposed (r a) (second_left r u)) a residual in
    let fourth := accept_else (over_proposed (hub_left r u) (first_left r u)) a residual in
    if x == a then
      if later is (y, _) :: _ then accept_else (over_proposed (others_left r u y) (second_pairs u y)) y third else third
    else accept_else (over_proposed (others r u x) (first_pairs u x)) x fourth
  else bind N (draw N V r) (fun x => ret N (x, false)).

End Programs.

Section Theorems.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (p q : seq T -> T -> R) (top : (T -> R) -> T).
Hypotheses (Hp : forall c, pmf (p c)) (Hq : forall c, pmf (q c)).
Local Notation sibling := (hub_sibling N V q top).
Local Notation below := (@hub_below T).

Lemma over_proposedE (mass proposed : R) : 0 <= mass -> 0 <= proposed ->
  proposed * over_proposed N mass proposed = Num.min proposed mass.
Proof.
move=> m0 s0; rewrite /over_proposed /=; case: ltP => [pos | s_le]; last first.
  have -> : proposed = 0 by apply/eqP; rewrite eq_le s_le.
  by rewrite mul0r min_l.
case: ltP => [lt | ge]; last by rewrite mulr1.
by rewrite mulrCA divff ?mulr1 // gt_eqF.
Qed.

Lemma E_accept_else a (x : T) otherwise K :
  E (accept_else N a x otherwise) K = a * K (x, true) + (1 - a) * E otherwise K.
Proof. by rewrite E_bind E_flip E_ret. Qed.

Lemma off_ge0 a (u : T -> R) x : (forall x, 0 <= u x) -> 0 <= off N a u x.
Proof. by rewrite /off; case: ifP. Qed.

Lemma hub_siblings_pmf plan c earlier u : sibling plan c earlier = Some u -> pmf u.
Proof.
rewrite /hub_sibling total_token; set a := top (q c).
case: earlier => [[<-] //|x [|//]]; case: ifP => [_|_ [<-]]; last first.
  split=> [y|]; first by rewrite /only; case: ifP; rewrite ?ler01.
  by rewrite (bigD1 a) //= /only eqxx big1 ?addr0 // => y /negbTE->.
case: ifP => // pos [<-]; split=> [y|]; first by rewrite divr_ge0 ?off_ge0 ?(ltW pos) //; exact: (Hq c).1.
by rewrite -mulr_suml divff // gt_eqF.
Qed.

Section Place.
Variables (r u : T -> R).
Hypotheses (Hr : pmf r) (Hu : pmf u).
Let a := top u.
Local Notation pairs1 := (first_pairs N top u).
Local Notation pairs2 := (second_pairs N V top u).
Local Notation o0 := (others N top r u).
Local Notation o1 := (others_left N top r u).
Local Notation left1 := (first_left N V top r u).
Local Notation left2 := (second_left N V top r u).
Local Notation rest := (\sum_x off N a u x).
Let m1 x : R := Num.min (pairs1 x) (o0 x).
Let m2 x : R := Num.min (pairs2 x) (o1 x).

Lemma rest_ge0 : 0 <= rest.
Proof. by apply: sumr_ge0 => x _; apply: off_ge0; exact: Hu.1. Qed.
Lemma pairs1_ge0 x : 0 <= pairs1 x.
Proof. by apply: off_ge0; exact: Hu.1. Qed.
Lemma o0_ge0 x : 0 <= o0 x.
Proof. by apply: off_ge0; exact: Hr.1. Qed.
Lemma pairs2_ge0 x : 0 <= pairs2 x.
Proof.
rewrite /second_pairs total_token /=; case: ifP => [pos|_]; last exact: pairs1_ge0.
by rewrite mulr_ge0 ?Hu.1 // divr_ge0 ?(ltW pos) //; exact: pairs1_ge0.
Qed.
Lemma o1_ge0 x : 0 <= o1 x. Proof. exact: excess_ge0. Qed.

Lemma rest_hub : rest = 1 - u a.
Proof.
rewrite -Hu.2 [in RHS](bigD1 a) //= addrC addKr (bigD1 a) //= /off eqxx add0r.
by apply: eq_bigr => x /negbTE->.
Qed.

(** The pairs that are drawn, as a sum over the other token of each. *)
Lemma left1E : left1 = rest - \sum_x m1 x.
Proof.
rewrite /first_left total_token -sumrB; apply: eq_bigr => x _; rewrite excess_sub minC.
by [].
Qed.

Lemma m2_none : ~~ (0 < rest) -> forall x, m2 x = 0.
Proof.
move=> no x; have zero : rest = 0 by apply/eqP; rewrite eq_le rest_ge0 andbT leNgt.
have /psumr_eq0P off0 := zero.
rewrite /m2 /second_pairs total_token /= (negbTE no) off0 ?min_l ?o1_ge0 // => y _.
by apply: off_ge0; exact: Hu.1.
Qed.

Lemma left2E : left2 = u a - \sum_x m2 x.
Proof.
rewrite /second_left total_token /=; case: ifP => [pos|/negbT no].
  have -> : u a = \sum_x pairs2 x.
    rewrite (eq_bigr (fun x => u a * (off N a u x / rest))) => [|x _]; last by rewrite /second_pairs total_token /= pos.
    by rewrite -mulr_sumr -mulr_suml divff ?mulr1 // gt_eqF.
  by rewrite total_token -sumrB; apply: eq_bigr => x _; rewrite excess_sub minC.
by rewrite big1 ?subr0 // => x _; exact: m2_none.
Qed.

Lemma lefts : left1 + left2 = 1 - \sum_x m1 x - \sum_x m2 x.
Proof. by rewrite left1E left2E rest_hub addrACA subrK [in LHS]addrA. Qed.

Lemma left1_ge0 : 0 <= left1.
Proof. by rewrite /first_left total_token sumr_ge0 // => x _; exact: excess_ge0. Qed.
Lemma left2_ge0 : 0 <= left2.
Proof.
rewrite /second_left; case: ifP => _; last exact: Hu.1.
by rewrite total_token sumr_ge0 // => x _; exact: excess_ge0.
Qed.

Let t3 : R := Num.min left2 (r a).
Let t4 : R := Num.min left1 (hub_left N V top r u).

Lemma hub_leftE : hub_left N V top r u = r a - t3.
Proof.
rewrite /hub_left positive_partE /t3 /=; case: (leP left2 (r a)) => h; first by rewrite max_l ?subr_ge0.
by rewrite subrr max_r // subr_le0 ltW.
Qed.
Lemma hub_left_ge0 : 0 <= hub_left N V top r u.
Proof. by rewrite /hub_left positive_partE le_maxr lexx orbT. Qed.

Lemma at_hub : pairs1 a = 0 /\ pairs2 a = 0 /\ o0 a = 0 /\ o1 a = 0.
Proof.
have z1 : pairs1 a = 0 by rewrite /first_pairs /off eqxx.
have z0 : o0 a = 0 by rewrite /others /off eqxx.
split=> //; split; last by split=> //; rewrite /others_left excessE z0 z1 subrr maxxx.
by rewrite /second_pairs /off eqxx; case: ifP => //; rewrite /= mul0r mulr0.
Qed.

Lemma owedE x : hub_owed N V top r u x = r x - m1 x - m2 x - (if x == a then t3 + t4 else 0).
Proof.
have [z1 [z2 [z0 z01]]] := at_hub; rewrite /hub_owed; case: eqP => [-> | /eqP xa].
  have -> : m1 a = 0 by rewrite /m1 z1 z0 minxx.
  have -> : m2 a = 0 by rewrite /m2 z2 z01 minxx.
  rewrite !subr0 positive_partE opprD addrA -hub_leftE /t4 /=.
  case: (leP left1 (hub_left N V top r u)) => h; first by rewrite max_l ?subr_ge0.
  by rewrite subrr max_r // subr_le0 ltW.
rewrite excess_sub -/(m2 x) /others_left excess_sub -/(m1 x) subr0.
by rewrite /others /off (negbTE xa).
Qed.

Lemma owed_ge0 x : 0 <= hub_owed N V top r u x.
Proof.
rewrite /hub_owed; case: ifP => _; last exact: excess_ge0.
by rewrite positive_partE le_maxr lexx orbT.
Qed.

Lemma owed_mass : \sum_x hub_owed N V top r u x = left1 + left2 - t3 - t4.
Proof.
rewrite (eq_bigr _ (fun x _ => owedE x)) !sumrB Hr.2 -lefts -[RHS]addrA -opprD; congr (_ - _).
by rewrite (bigD1 a) //= eqxx big1 ?addr0 // => x /negbTE->.
Qed.

Lemma residual_mass x : (left1 + left2 - t3 - t4) * hub_residual N V top r u x = hub_owed N V top r u x.
Proof.
rewrite -owed_mass /hub_residual total_token /=; case: ltP => [pos|le0]; first by rewrite mulrCA divff ?mulr1 // gt_eqF.
have Z0 : \sum_y hub_owed N V top r u y = 0 by apply/eqP; rewrite eq_le le0 sumr_ge0 // => y _; exact: owed_ge0.
by rewrite Z0 mul0r; symmetry; move/psumr_eq0P: Z0; apply=> // y _; exact: owed_ge0.
Qed.

(** All steps together: what is moved, and what is left of the pairs spread over what p has left. *)
Lemma four_steps F : let O := \sum_x hub_residual N V top r u x * F x in
  let third := over_proposed N (r a) left2 * F a + (1 - over_proposed N (r a) left2) * O in
  let fourth := over_proposed N (hub_left N V top r u) left1 * F a + (1 - over_proposed N (hub_left N V top r u) left1) * O in
  \sum_x m1 x * F x + left1 * fourth + (\sum_x m2 x * F x + left2 * third) = \sum_x r x * F x.
Proof.
move=> O third fourth.
have -> : left2 * third = t3 * F a + (left2 - t3) * O.
  by rewrite /third mulrDr !mulrA mulrBr mulr1 over_proposedE ?left2_ge0 ?Hr.1.
have -> : left1 * fourth = t4 * F a + (left1 - t4) * O.
  by rewrite /fourth mulrDr !mulrA mulrBr mulr1 over_proposedE ?left1_ge0 ?hub_left_ge0.
have spread : (left1 - t4) * O + (left2 - t3) * O = \sum_x hub_owed N V top r u x * F x.
  rewrite -mulrDl mulr_sumr; apply: eq_bigr => x _; rewrite mulrA -residual_mass; congr (_ * _ * _).
  by rewrite addrACA -opprD (addrC t4) opprD addrA.
have at_a : \sum_x (if x == a then t3 + t4 else 0) * F x = (t3 + t4) * F a.
  by rewrite (bigD1 a) //= eqxx big1 ?addr0 // => x /negbTE->; rewrite mul0r.
rewrite [RHS](eq_bigr (fun x => m1 x * F x + m2 x * F x + (if x == a then t3 + t4 else 0) * F x + hub_owed N V top r u x * F x)) => [|x _]; last first.
  rewrite -!mulrDl owedE; congr (_ * _).
  set i := if _ then _ else _; have -> : r x - m1 x - m2 x - i = r x - (m1 x + m2 x + i) by rewrite !opprD !addrA.
  by rewrite [RHS]addrC subrK.
rewrite !big_split /= at_a -spread [(t3 + t4) * _]mulrDl.
have regroup (A B C D X Y : R) : A + (D + X) + (B + (C + Y)) = A + B + (C + D) + (X + Y).
  by rewrite addrACA (addrACA D) addrA (addrC D).
exact: regroup.
Qed.
End Place.

Lemma E_through x v later r F : let a := top v in
  let O := \sum_y hub_residual N V top r v y * F y in
  let third := over_proposed N (r a) (second_left N V top r v) * F a + (1 - over_proposed N (r a) (second_left N V top r v)) * O in
  let fourth := over_proposed N (hub_left N V top r v) (first_left N V top r v) * F a
    + (1 - over_proposed N (hub_left N V top r v) (first_left N V top r v)) * O in
  E (through_the_hub N V top r ((x, v) :: later)) (fun xa => F xa.1)
  = if x == a then
      if later is (y, _) :: _ then
        let b := over_proposed N (others_left N top r v y) (second_pairs N V top v y) in b * F y + (1 - b) * third
      else third
    else let b := over_proposed N (others N top r v x) (first_pairs N top v x) in b * F x + (1 - b) * fourth.
Proof.
move=> a O third fourth.
have residualE : E (bind N (draw N V (hub_residual N V top r v)) (fun y => ret N (y, false))) (fun xa => F xa.1) = O.
  by rewrite E_bind E_token; apply: eq_bigr => y _; rewrite E_ret.
rewrite /through_the_hub -/a; case: ifP => _; last by rewrite !E_accept_else residualE.
by case: later => [|[y w] later]; rewrite !E_accept_else residualE.
Qed.

Local Notation candidates := (candidates N V sibling below (@undrawn R T unit) 2).
Local Notation siblings := (siblings N V sibling below (@undrawn R T unit)).

Lemma E_no_sibling w plan c earlier K : sibling plan c earlier = None -> E (siblings w plan c earlier) K = K [::].
Proof. by case: w => [|w] /= => [_|->]; rewrite E_ret. Qed.

Arguments Tree.siblings : simpl never.
Arguments hub_sibling : simpl never.
Arguments through_the_hub : simpl never.
Arguments choose : simpl never.
Arguments Tree.candidates : simpl never.

(** ** The four steps of SpecHub are exact where the candidates are one pair. *)
Theorem through_the_hub_exact :
  exact_where sibling below 2 p (through_the_hub N V top) (fun plans => (size plans <= 1)%N).
Proof.
move=> [|plan [|//]] c F _; first by rewrite E_ret /choose E_bind E_token; apply: eq_bigr => x _; rewrite E_ret.
rewrite E_candidates_cons; set u := q c; set r := p c; set a := top u; have Hr : pmf r := Hp c; have Hu : pmf u := Hq c.
have first : sibling plan c [::] = Some u by [].
rewrite (E_siblingsS _ _ _ _ first) -(four_steps Hr Hu F) -/a.
set O := \sum_x hub_residual N V top r u x * F x.
set third := over_proposed N (r a) _ * F a + _; set fourth := over_proposed N (hub_left _ _ _ _ _) _ * F a + _.
have [z1 [z2 _]] := at_hub r u; have rest0 := rest_ge0 Hu.
transitivity (\sum_x (Num.min (first_pairs N top u x) (others N top r u x) * F x
    + (first_pairs N top u x - Num.min (first_pairs N top u x) (others N top r u x)) * fourth)
    + (\sum_x Num.min (second_pairs N V top u x) (others_left N top r u x) * F x + second_left N V top r u * third)); last first.
  congr (_ + _); rewrite big_split -mulr_suml sumrB /=; congr (_ + _ * _).
  by rewrite left1E.
rewrite (bigD1 a) //= [in RHS](bigD1 a) //= z1 min_l ?o0_ge0 // !mul0r subr0 mul0r addr0 add0r addrC.
have pmfs := hub_siblings_pmf.
have one_place x later : E (candidates [::] c) (fun l' => E (choose N V (through_the_hub N V top) (p c) (map fst ((x, u, tt) :: later ++ l'))) (fun xa => F xa.1))
    = E (through_the_hub N V top r ((x, u) :: map fst later)) (fun xa => F xa.1) by rewrite E_ret cats0.
congr (_ + _).
  apply: eq_bigr => x xa; rewrite E_ret; set b := over_proposed N (others N top r u x) (first_pairs N top u x).
  rewrite (E_ext _ (L := fun=> b * F x + (1 - b) * fourth)) => [|later]; last by rewrite one_place E_through -/a (negbTE xa).
  have undrawn_proper (plan' : unit) (c' : seq T) : proper (@undrawn R T unit plan' c') by exact: proper_ret.
  rewrite (proper_siblings below pmfs undrawn_proper).
  have -> : u x = first_pairs N top u x by rewrite /first_pairs /off (negbTE xa).
  by rewrite mulrDr !mulrA mulrBr mulr1 over_proposedE ?o0_ge0 ?pairs1_ge0.
rewrite E_ret [in RHS]left2E // -/a.
case: (boolP (0 < \sum_x off N a u x)) => [pos|no].
  have second : sibling plan c [:: a] = Some (fun y => off N a u y / \sum_x off N a u x).
    by rewrite /hub_sibling total_token /= eqxx pos.
  have Hv := pmfs _ _ _ _ second.
  rewrite (E_siblingsS _ _ _ _ second) mulr_sumr.
  rewrite (eq_bigr (fun y => Num.min (second_pairs N V top u y) (others_left N top r u y) * F y
      + (u a * (off N a u y / \sum_x off N a u x) - Num.min (second_pairs N V top u y) (others_left N top r u y)) * third)) => [|y _].
    by rewrite big_split -mulr_suml sumrB -mulr_sumr Hv.2 mulr1.
  rewrite E_ret E_ret (one_place a [:: (y, fun y => off N a u y / \sum_x off N a u x, tt)]) E_through -/a eqxx /=.
  have pairsE : u a * (off N a u y / \sum_x off N a u x) = second_pairs N V top u y by rewrite /second_pairs total_token /= pos.
  by rewrite mulrA pairsE mulrDr !mulrA mulrBr mulr1 over_proposedE ?o1_ge0 ?pairs2_ge0.
have second : sibling plan c [:: a] = None by rewrite /hub_sibling total_token /= eqxx (negbTE no).
rewrite (E_no_sibling _ _ second) (one_place a [::]) E_through -/a eqxx.
transitivity (u a * third); first by [].
by rewrite !big1 ?subr0 ?add0r // => x _; rewrite (m2_none r Hu no) ?mul0r.
Qed.

(** Both tokens of a pair differ, so every place below has at most one plan. *)
Lemma one_plan : handed_down sibling below 2 (fun plans => (size plans <= 1)%N).
Proof.
move=> [|plan [|//]] c _ K L KL; first by rewrite !E_ret; apply: KL.
rewrite !E_candidates_cons.
have first : sibling plan c [::] = Some (q c) by [].
rewrite !(E_siblingsS _ _ _ _ first); apply: eq_bigr => x _; congr (_ * _); rewrite !E_ret.
case e: (sibling plan c [:: x]) => [v|]; last by rewrite !(E_no_sibling _ _ e) !E_ret; apply: KL => y /=; rewrite /plans_below /=; case: ifP.
rewrite !(E_siblingsS _ _ _ _ e); apply: eq_bigr => y _; rewrite !E_ret.
have [same|differ] := eqVneq y x; last first.
  by congr (_ * _); apply: KL => z; rewrite /plans_below /=; case: eqP => [<- | _] /=; rewrite ?(negbTE differ) //=; case: ifP.
suff -> : v y = 0 by rewrite !mul0r.
move: e; rewrite /hub_sibling total_token same; set a := top (q c).
by case: eqP => [->|/eqP xa]; [case: ifP => // _ [<-]; rewrite /off eqxx mul0r | case=> <-; rewrite /only (negbTE xa)].
Qed.

(** ** SpecHub is lossless. *)
Theorem spechub_lossless (State : Type) (height : nat) (next : State -> seq T -> seq (node R T) -> seq T * T * nat -> State) eos slack n (s : State) c :
  same_law (decoded_text N eos (tree_round N V sibling below p (through_the_hub N V top) (fun _ _ => tt) 2 height next) slack n s c)
           (target_alone N V eos p n c).
Proof.
exact: (tree_lossless_where hub_siblings_pmf Hp height next eos slack n s c through_the_hub_exact one_plan (fun _ _ => isT)).
Qed.
End Theorems.
