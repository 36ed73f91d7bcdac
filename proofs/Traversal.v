(** * Traversal verification: a drafted tree, verified from its leaves to its root.

    A node is entered with a weight.  Its children are entered one after the other, each with the weight that the
    capped ratio gives it; if none of them is accepted, the path to the node is accepted with the weight that is left. *)
From Lossless Require Import Probability OnePosition Texts Chain Block Tree.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).
Variable p : seq T -> T -> R.

Section Children.
Variable enter_child : seq T -> R -> seq (node R T) -> dist R (option (seq T * T * nat)).
Fixpoint enter_children (root : bool) (ks : seq T) (w : R) (owed : T -> R) (l : seq (node R T)) :
    dist R (option (seq T * T * nat)) :=
  if l is Node d u below :: later then
    bind N (enter_child (rcons ks d) (accept_probability N (weighted N w owed) u d) below) (fun o =>
      if o is Some result then ret N (Some result) else
      let spare := total N V (excess N (weighted N w owed) u) in
      if less N (zero N) spare
      then enter_children root ks (over N spare (plus N spare (minus N (one N) w))) (excess_law N V (weighted N w owed) u) later
      else enter_children root ks (if root then w else zero N) owed later)
  else
    bind N (flip N w) (fun heads =>
      if heads then bind N (draw N V owed) (fun x => ret N (Some (ks, x, size ks))) else ret N None).
End Children.

Fixpoint enter height (root : bool) (c ks : seq T) (w : R) (l : seq (node R T)) : dist R (option (seq T * T * nat)) :=
  if height is height'.+1 then enter_children (enter height' false c) root ks w (p (c ++ ks)) l
  else bind N (flip N w) (fun heads =>
    if heads then bind N (draw N V (p (c ++ ks))) (fun x => ret N (Some (ks, x, size ks))) else ret N None).

Variables (Plan : Type) (sibling : Plan -> seq T -> seq T -> option (T -> R)) (below : Plan -> seq T -> seq T -> T -> Plan).
Variable State : Type.
Variables (plan_of : State -> seq T -> Plan) (width height : nat).
Variable next : State -> seq T -> seq (node R T) -> seq T * T * nat -> State.

Definition traversal_round (s : State) n (c : seq T) : dist R (State * (seq T * T * nat)) :=
  let h := minn height n.-1 in
  bind N (grow N V sibling below width h [:: plan_of s c] c) (fun l =>
  bind N (something_stays N (enter h true c [::] (one N) l)) (fun result => ret N (next s c l result, result))).

End Programs.

Section Theorems.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (Plan : Type) (sibling : Plan -> seq T -> seq T -> option (T -> R)).
Variable below : Plan -> seq T -> seq T -> T -> Plan.
Hypothesis Hsibling : forall plan c earlier u, sibling plan c earlier = Some u -> pmf u.
Variable width : nat.
Variable p : seq T -> T -> R.
Hypothesis Hp : forall c, pmf (p c).
Local Notation grow := (grow N V sibling below width).
Local Notation siblings := (siblings N V sibling below).

Lemma spare_weight w (r u : T -> R) : w <= 1 -> 0 < spare w r u ->
  (1 - w + spare w r u) * (spare w r u / (spare w r u + (1 - w))) = spare w r u.
Proof.
move=> w1 pos; rewrite (addrC (spare _ _ _)) mulrCA divff ?mulr1 // gt_eqF //.
by rewrite ltr_paddl // subr_ge0.
Qed.

(** ** The invariant of traversal verification.
    A subtree that is entered with the weight w accepts something with probability exactly w, whatever its shape. *)
Theorem traversal_invariant n c (f : seq T -> R) : forall h (root : bool) plan ks (w fail : R), 0 <= w <= 1 -> (root -> w = 1) ->
  (size ks + h < n)%N ->
  E (grow h [:: plan] (c ++ ks)) (fun l => E (enter N V p h root c ks w l) (or_else (target_after p n c f) fail))
  = w * behind p n c f ks + (1 - w) * fail.
Proof.
elim=> [|h IH] root plan ks w fail w01 root1 hn.
  by rewrite E_ret E_ending // -[size ks]addn0.
have kn : (size ks < n)%N by apply: leq_ltn_trans hn; rewrite leq_addr.
rewrite /grow -/grow E_bind E_candidates_cons -(target_behind _ _ _ kn).
transitivity (E (siblings (fun plan c' => grow h [:: plan] c') width plan (c ++ ks) [::]) (fun l =>
    E (enter_children N V (enter N V p h false c) root ks w (p (c ++ ks)) (map (@node_of R T) l))
      (or_else (target_after p n c f) fail))).
  by apply: E_ext => l; rewrite E_ret cats0 E_ret.
move: (p (c ++ ks)) (Hp (c ++ ks)) => owed Ho.
elim: (X in siblings _ X) (Nil T) w w01 root1 owed Ho fail => [|m IHm] earlier w w01 root1 owed Ho fail.
  rewrite E_ret /= E_bind E_flip E_ret E_bind E_token; congr (_ * _ + _).
  by apply: eq_bigr => x _; rewrite E_ret.
case e: (sibling plan (c ++ ks) earlier) => [u|]; last first.
  rewrite /= e E_ret /= E_bind E_flip E_ret E_bind E_token; congr (_ * _ + _).
  by apply: eq_bigr => x _; rewrite E_ret.
have Hu := Hsibling e; have [o0 o1] := Ho; have [u0 u1] := Hu; have /andP[w0 w1] := w01.
rewrite (E_siblingsS _ _ _ _ e).
set W := weighted N w owed.
pose some := 0 < spare w owed u.
pose h' := if some then spare w owed u / (spare w owed u + (1 - w)) else if root then w else 0.
pose owed' := if some then excess_law N V W u else owed.
have s0 := spare_ge0 w owed u.
have none : ~~ some -> spare w owed u = 0 by rewrite -leNgt => s_le; apply/eqP; rewrite eq_le s_le.
have Ho' : pmf owed'.
  rewrite /owed' /some; case: ltP => // pos; split=> [x|].
    by rewrite /excess_law total_token /= -/(spare w owed u) pos divr_ge0 ?excess_ge0.
  rewrite /excess_law total_token /= -/(spare w owed u) pos -mulr_suml -/(spare w owed u) divff //.
  by rewrite gt_eqF.
have h01 : 0 <= h' <= 1.
  rewrite /h'; case: ifP => [pos|_]; last by case: (root); rewrite ?w01 ?lexx ?ler01.
  have den : 0 < spare w owed u + (1 - w) by rewrite ltr_paddr // subr_ge0.
  apply/andP; split; first by rewrite divr_ge0 // ltW.
  by rewrite ler_pdivr_mulr // mul1r ler_addl subr_ge0.
have hroot : root -> h' = 1.
  move=> isroot; have w_1 := root1 isroot; rewrite /h' isroot /some w_1; case: ltP => // pos.
  by rewrite subrr addr0 divff // gt_eqF.
rewrite -(@weighted_step _ _ w owed u (accept_probability N W u) owed' _ h') //; first last.
- rewrite /h'; case: ifP => [|/negbT no]; first exact: spare_weight.
  rewrite (none no) addr0; case isroot: (root); last by rewrite mulr0.
  by rewrite root1 // subrr mul0r.
- move=> x; rewrite /owed'; case: ifP => [pos|/negbT no]; first exact: excess_lawE.
  rewrite (none no) mul0r; have /psumr_eq0P := none no; move=> /(_ (fun y _ => excess_ge0 _ _ y)).
  by move=> zero; rewrite zero.
- by move=> d; apply: kept_mass => //; rewrite mulr_ge0.
apply: eq_bigr => d _; congr (_ * _).
have d01 : 0 <= accept_probability N W u d <= 1 by apply: accept_range; rewrite mulr_ge0.
rewrite -(IHm (rcons earlier d) h' h01 hroot owed' Ho' fail).
rewrite -(IH false (below plan (c ++ ks) earlier d) (rcons ks d)) //; last by rewrite size_rcons addSnnS.
rewrite -rcons_cat; apply: E_ext => x.
set rest := E (siblings _ m plan (c ++ ks) (rcons earlier d)) _.
transitivity (E (siblings (fun plan c' => grow h [:: plan] c') m plan (c ++ ks) (rcons earlier d)) (fun later =>
    E (enter N V p h false c (rcons ks d) (accept_probability N W u d) x)
      (or_else (target_after p n c f) (E (enter_children N V (enter N V p h false c) root ks h' owed'
        (map (@node_of R T) later)) (or_else (target_after p n c f) fail))))).
  apply: E_ext => later; rewrite /= E_bind; apply: E_ext => -[result|] /=; first by rewrite E_ret.
  by rewrite total_token -/(spare w owed u) /h' /owed' -/some; case: ifP.
rewrite E_exchange; apply: E_ext => -[result|] //=.
by rewrite (proper_siblings below Hsibling) // => plan' c'; apply: proper_grow.
Qed.

Variables (State : Type) (plan_of : State -> seq T -> Plan) (height : nat).
Variable next : State -> seq T -> seq (node R T) -> seq T * T * nat -> State.

(** ** Traversal verification is lossless, for trees of any shape. *)
Theorem traversal_round_lossless :
  lossless_round p (traversal_round N V p sibling below plan_of width height next).
Proof.
move=> s [//|n] c f K _ target; rewrite /traversal_round E_bind -behind_nothing.
set h := minn _ _; have hn : (h < n.+1)%N by rewrite ltnS geq_minr.
have /= := traversal_invariant (n := n.+1) c f (h := h) (root := true) (plan_of s c) (ks := [::]) (w := 1) 0.
rewrite ler01 lexx cats0 => /(_ isT (fun _ => erefl) hn); rewrite mul1r subrr mul0r addr0 => <-.
apply: E_ext => l; rewrite E_bind E_something_stays.
by apply: E_ext => -[[[ks x] a]|] //=; rewrite E_ret target.
Qed.

(** The texts of traversal verification have the law of the target alone. *)
Theorem traversal_lossless eos slack n s c :
  same_law (decoded_text N eos (traversal_round N V p sibling below plan_of width height next) slack n s c)
           (target_alone N V eos p n c).
Proof. by apply: decoded_text_law => //; exact: traversal_round_lossless. Qed.

End Theorems.
