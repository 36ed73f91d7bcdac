(** * Trees of drafts, verified level by level.

    A tree is drafted first, then walked from the root: at each place a selection rule looks at all candidates and
    either goes on below one of them or emits a last token.  Nodes that spell the same text are one place; the children
    of all of them are candidates there.  The shape may be anything that is decided before the tokens that it would
    depend on are drawn: how many siblings there are, and from which pmf the next one is drawn, may depend on the text
    and on the earlier siblings. *)
From Lossless Require Import Probability OnePosition Texts.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).

(** A drafted node: its token, the pmf that the token was drawn from, and the nodes below it. *)
Inductive node := Node of T & (T -> R) & seq node.
Definition token_of (v : node) := let: Node d _ _ := v in d.
Definition pmf_of (v : node) := let: Node _ u _ := v in u.
Definition below_of (v : node) := let: Node _ _ l := v in l.
Definition candidate_of (v : node) : T * (T -> R) := (token_of v, pmf_of v).

(** What a drafter means to do at a node: the pmf of the next child, given the text and the earlier children, or [None]
    if there is no further one; and what it means to do below a child. *)
Variable Plan : Type.
Variable sibling : Plan -> seq T -> seq T -> option (T -> R).
Variable below : Plan -> seq T -> seq T -> T -> Plan.

Section Siblings.
Variables (X : Type) (sub : Plan -> seq T -> dist R X).   (* what is drafted below a child *)
Fixpoint siblings width (plan : Plan) (c earlier : seq T) : dist R (seq (T * (T -> R) * X)) :=
  if width is width'.+1 then
    if sibling plan c earlier is Some u then
      bind N (draw N V u) (fun d =>
      bind N (sub (below plan c earlier d) (rcons c d)) (fun x =>
      bind N (siblings width' plan c (rcons earlier d)) (fun later => ret N ((d, u, x) :: later))))
    else ret N [::]
  else ret N [::].

(** The candidates behind the text [c] where several nodes spell it. *)
Fixpoint candidates width (plans : seq Plan) (c : seq T) : dist R (seq (T * (T -> R) * X)) :=
  if plans is plan :: plans' then
    bind N (siblings width plan c [::]) (fun l =>
    bind N (candidates width plans' c) (fun l' => ret N (l ++ l')))
  else ret N [::].
End Siblings.

Definition node_of (v : T * (T -> R) * seq node) : node := Node v.1.1 v.1.2 v.2.

(** The whole tree, at most [height] levels deep and [width] children wide. *)
Fixpoint grow width height (plans : seq Plan) (c : seq T) : dist R (seq node) :=
  if height is height'.+1 then
    bind N (candidates (fun plan c' => grow width height' [:: plan] c') width plans c) (fun l => ret N (map node_of l))
  else ret N [::].

Variable p : seq T -> T -> R.
(** A selection: the token that comes out, and whether the walk goes on below it. *)
Variable select : (T -> R) -> seq (T * (T -> R)) -> dist R (T * bool).

Definition choose (r : T -> R) (l : seq (T * (T -> R))) : dist R (T * bool) :=
  if l is [::] then bind N (draw N V r) (fun x => ret N (x, false)) else select r l.

Definition merged (x : T) (l : seq node) : seq node := flatten [seq below_of v | v <- l & token_of v == x].

Fixpoint descend height (c ks : seq T) (l : seq node) : dist R (seq T * T * nat) :=
  if height is height'.+1 then
    bind N (choose (p (c ++ ks)) (map candidate_of l)) (fun xa =>
      if xa.2 then descend height' c (rcons ks xa.1) (merged xa.1 l) else ret N (ks, xa.1, size ks))
  else bind N (draw N V (p (c ++ ks))) (fun x => ret N (ks, x, size ks)).

Variable State : Type.
Variables (plan_of : State -> seq T -> Plan) (width height : nat).
Variable next : State -> seq T -> seq node -> seq T * T * nat -> State.

(** A round that may emit [n] tokens: the tree is at most [n - 1] levels deep. *)
Definition tree_round (s : State) n (c : seq T) : dist R (State * (seq T * T * nat)) :=
  let h := minn height n.-1 in
  bind N (grow width h [:: plan_of s c] c) (fun l =>
  bind N (descend h c [::] l) (fun result => ret N (next s c l result, result))).

(** Recursive rejection: try the candidates in order against what is still owed of the target. *)
Fixpoint try_in_turn (owed : T -> R) (l : seq (T * (T -> R))) : dist R (T * bool) :=
  if l is (d, u) :: l' then
    bind N (flip N (accept_probability N owed u d)) (fun accepted =>
      if accepted then ret N (d, true) else try_in_turn (excess_law N V owed u) l')
  else bind N (draw N V owed) (fun x => ret N (x, false)).

(** Candidate sets: draw from the target, go on if the draw is one of the candidates. *)
Definition look_up (r : T -> R) (l : seq (T * (T -> R))) : dist R (T * bool) :=
  bind N (draw N V r) (fun z => ret N (z, z \in map fst l)).

End Programs.

Section Theorems.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (Plan : Type) (sibling : Plan -> seq T -> seq T -> option (T -> R)).
Variable below : Plan -> seq T -> seq T -> T -> Plan.
Hypothesis Hsibling : forall plan c earlier u, sibling plan c earlier = Some u -> pmf u.
Variable width : nat.

Local Notation siblings := (siblings N V sibling below).
Local Notation candidates := (candidates N V sibling below).
Local Notation grow := (grow N V sibling below width).

(** Only the tokens of a place, with the plans below them. *)
Definition undrawn (plan : Plan) (c : seq T) : dist R Plan := ret N plan.

Section Drawing.
Variables (X : Type) (sub : Plan -> seq T -> dist R X).

Lemma E_siblingsS w plan c earlier u K : sibling plan c earlier = Some u ->
  E (siblings sub w.+1 plan c earlier) K
  = \sum_d u d * E (sub (below plan c earlier d) (rcons c d)) (fun x =>
      E (siblings sub w plan c (rcons earlier d)) (fun later => K ((d, u, x) :: later))).
Proof.
move=> e; rewrite /= e E_bind E_token; apply: eq_bigr => d _; congr (_ * _); rewrite E_bind; apply: E_ext => x.
by rewrite E_bind; apply: E_ext => later; rewrite E_ret.
Qed.

Lemma E_candidates_cons plan plans c K :
  E (candidates sub width (plan :: plans) c) K
  = E (siblings sub width plan c [::]) (fun l => E (candidates sub width plans c) (fun l' => K (l ++ l'))).
Proof.
by rewrite /= E_bind; apply: E_ext => l; rewrite E_bind; apply: E_ext => l'; rewrite E_ret.
Qed.

Lemma E_candidates_cat plans1 plans2 c : forall K,
  E (candidates sub width (plans1 ++ plans2) c) K
  = E (candidates sub width plans1 c) (fun l => E (candidates sub width plans2 c) (fun l' => K (l ++ l'))).
Proof.
elim: plans1 => [|plan plans1 IH] K; first by rewrite E_ret.
rewrite [in RHS]E_candidates_cons cat_cons E_candidates_cons; apply: E_ext => l; rewrite IH.
by apply: E_ext => l1; apply: E_ext => l2; rewrite catA.
Qed.

(** Draft what is below each of the candidates [l]. *)
Fixpoint draw_below (c : seq T) (l : seq (T * (T -> R) * Plan)) : dist R (seq (T * (T -> R) * X)) :=
  if l is (d, u, plan) :: l' then
    bind N (sub plan (rcons c d)) (fun x => bind N (draw_below c l') (fun l'' => ret N ((d, u, x) :: l'')))
  else ret N [::].

Lemma E_draw_below_cons c d u plan l K :
  E (draw_below c ((d, u, plan) :: l)) K
  = E (sub plan (rcons c d)) (fun x => E (draw_below c l) (fun l' => K ((d, u, x) :: l'))).
Proof. by rewrite /= E_bind; apply: E_ext => x; rewrite E_bind; apply: E_ext => l'; rewrite E_ret. Qed.

Lemma E_draw_below_cat c l1 l2 : forall K,
  E (draw_below c (l1 ++ l2)) K = E (draw_below c l1) (fun l => E (draw_below c l2) (fun l' => K (l ++ l'))).
Proof.
elim: l1 => [|[[d u] plan] l1 IH] K; first by rewrite E_ret.
rewrite cat_cons !E_draw_below_cons; apply: E_ext => x; rewrite IH.
by apply: E_ext => l; apply: E_ext => l'.
Qed.

(** The tokens of a place may all be drawn before anything below them. *)
Lemma siblings_first w plan c : forall earlier K,
  E (siblings sub w plan c earlier) K = E (siblings undrawn w plan c earlier) (fun l => E (draw_below c l) K).
Proof.
elim: w => [|w IH] earlier K; first by rewrite /= !E_ret.
case e: (sibling plan c earlier) => [u|]; last by rewrite /= e !E_ret.
rewrite (E_siblingsS _ _ e) /= e E_bind E_token; apply: eq_bigr => d _; congr (_ * _).
rewrite E_bind E_ret E_bind (E_ext _ (fun x => IH _ _)) E_exchange; apply: E_ext => l.
by rewrite E_ret E_draw_below_cons.
Qed.

Lemma candidates_first plans c : forall K,
  E (candidates sub width plans c) K = E (candidates undrawn width plans c) (fun l => E (draw_below c l) K).
Proof.
elim: plans => [|plan plans IH] K; first by rewrite /= !E_ret.
rewrite E_candidates_cons siblings_first [RHS]E_bind; apply: E_ext => l; rewrite [RHS]E_bind.
rewrite (E_ext _ (fun l1 => IH _)) E_exchange; apply: E_ext => l'.
by rewrite E_ret E_draw_below_cat.
Qed.

Hypothesis Hsub : forall plan c, proper (sub plan c).

Lemma proper_draw_below c l : proper (draw_below c l).
Proof.
elim: l => [|[[d u] plan] l IH] a; first by rewrite E_ret.
by rewrite E_draw_below_cons (E_ext _ (fun x => IH a)) Hsub.
Qed.

Lemma proper_siblings w plan c : forall earlier, proper (siblings sub w plan c earlier).
Proof.
elim: w => [|w IH] earlier a; first by rewrite /= E_ret.
case e: (sibling plan c earlier) => [u|]; last by rewrite /= e E_ret.
rewrite (E_siblingsS _ _ e) (eq_bigr (fun d => u d * a)) -?mulr_suml ?(Hsibling e).2 ?mul1r // => d _.
by rewrite (E_ext _ (fun x => IH _ a)) Hsub.
Qed.

Lemma proper_candidates plans c : proper (candidates sub width plans c).
Proof.
elim: plans => [|plan plans IH] a; first by rewrite /= E_ret.
by rewrite E_candidates_cons (E_ext _ (fun l => IH a)) proper_siblings.
Qed.
End Drawing.

Lemma proper_grow h : forall plans c, proper (grow h plans c).
Proof.
elim: h => [|h IH] plans c a; first by rewrite /= E_ret.
rewrite /= E_bind -[RHS](proper_candidates (sub := fun plan c' => grow h [:: plan] c') _ plans c) => [|plan c'].
  by apply: E_ext => l; rewrite E_ret.
exact: IH.
Qed.

Lemma E_grow_cat h plans1 plans2 c K :
  E (grow h (plans1 ++ plans2) c) K = E (grow h plans1 c) (fun l => E (grow h plans2 c) (fun l' => K (l ++ l'))).
Proof.
case: h => [|h] /=; first by rewrite !E_ret.
rewrite !E_bind E_candidates_cat; apply: E_ext => l; rewrite E_ret E_bind; apply: E_ext => l'.
by rewrite !E_ret map_cat.
Qed.

(** The plans below those candidates that spell [x]. *)
Definition plans_below (x : T) (l : seq (T * (T -> R) * Plan)) : seq Plan := [seq v.2 | v <- l & v.1.1 == x].

Lemma merged_below h c x l : forall K,
  E (draw_below (fun plan c' => grow h [:: plan] c') c l) (fun l' => K (merged x (map (@node_of R T) l')))
  = E (grow h (plans_below x l) (rcons c x)) K.
Proof.
elim: l => [|[[d u] plan] l IH] K.
  by rewrite E_ret /plans_below /=; case: h => [|h] /=; rewrite ?E_bind ?E_ret.
rewrite E_draw_below_cons /plans_below /= /merged /=; case: eqP => [-> | ne] /=.
  rewrite -[in RHS]cat1s [RHS]E_grow_cat; apply: E_ext => x'.
  by rewrite -/(plans_below x l) -(IH (fun l' => K (x' ++ l'))).
by rewrite -/(plans_below x l) -IH (proper_grow h [:: plan] (rcons c d) (E _ _)).
Qed.

Variable p : seq T -> T -> R.
Hypothesis Hp : forall c, pmf (p c).
Variable select : (T -> R) -> seq (T * (T -> R)) -> dist R (T * bool).

(** A selection is exact if the token that comes out has the law of the target, whatever the plans of a place are; this
    is all that is asked of it.  In other words: any coupling of the candidates with a token of law p. *)
Definition exact_selection := forall plans c (F : T -> R),
  E (candidates undrawn width plans c) (fun l => E (choose N V select (p c) (map fst l)) (fun xa => F xa.1))
  = \sum_x p c x * F x.

(** A condition on the plans of a place that holds at the root and is handed down; without one every place counts. *)
Definition surely A (d : dist R A) (P : A -> Prop) := forall K L, (forall a, P a -> K a = L a) -> E d K = E d L.

Definition handed_down (reachable : seq Plan -> Prop) := forall plans c, reachable plans ->
  surely (candidates undrawn width plans c) (fun l => forall x, reachable (plans_below x l)).

Definition exact_where (reachable : seq Plan -> Prop) := forall plans c (F : T -> R), reachable plans ->
  E (candidates undrawn width plans c) (fun l => E (choose N V select (p c) (map fst l)) (fun xa => F xa.1))
  = \sum_x p c x * F x.

Lemma draw_below_tokens X (sub : Plan -> seq T -> dist R X) c l : forall K L,
  (forall l', map fst l' = map fst l -> K l' = L l') -> E (draw_below sub c l) K = E (draw_below sub c l) L.
Proof.
elim: l => [|[[d u] plan] l IH] K L KL; first by rewrite !E_ret KL.
rewrite !E_draw_below_cons; apply: E_ext => x; apply: IH => l' same.
by apply: KL; rewrite /= same.
Qed.

Lemma map_candidate_of (l : seq (T * (T -> R) * seq (node R T))) :
  map (@candidate_of R T) (map (@node_of R T) l) = map fst l.
Proof. by rewrite -map_comp; apply: eq_map => -[[d u] t]. Qed.

(** ** Any coupling with marginal p, at every reachable place of a drafted tree.
    If the selection is exact there then a tree that is drafted whole and then walked is lossless, merged nodes included. *)
Theorem descend_lossless_where reachable n c f : exact_where reachable -> handed_down reachable ->
  forall h plans ks, reachable plans -> (size ks + h < n)%N ->
  E (grow h plans (c ++ ks)) (fun l => E (descend N V p select h c ks l)
    (fun result => behind p n c f (rcons result.1.1 result.1.2))) = behind p n c f ks.
Proof.
move=> exact closed; elim=> [|h IH] plans ks reached hn.
  rewrite /= E_ret E_bind E_token -target_behind; last by rewrite -[size ks]addn0.
  by apply: eq_bigr => x _; rewrite E_ret.
have kn : (size ks < n)%N by apply: leq_ltn_trans hn; rewrite leq_addr.
rewrite -(target_behind _ _ _ kn) -(exact plans (c ++ ks) (fun x => behind p n c f (rcons ks x)) reached).
rewrite /grow -/grow E_bind candidates_first; apply: closed reached _ _ _ => l below_reached.
set r := p (c ++ ks).
pose after x pl := E (descend N V p select h c (rcons ks x) pl) (fun result => behind p n c f (rcons result.1.1 result.1.2)).
transitivity (E (draw_below (fun plan c' => grow h [:: plan] c') (c ++ ks) l) (fun l' =>
    E (choose N V select r (map fst l)) (fun xa =>
      if xa.2 then after xa.1 (merged xa.1 (map (@node_of R T) l')) else behind p n c f (rcons ks xa.1)))).
  apply: draw_below_tokens => l' same; rewrite E_ret /descend -/descend E_bind map_candidate_of same.
  by apply: E_ext => -[x []] //=; rewrite E_ret.
rewrite E_exchange; apply: E_ext => -[x []] /=; last by rewrite proper_draw_below // => plan c'; apply: proper_grow.
rewrite (merged_below h (c ++ ks) x l (after x)) rcons_cat /after IH //.
by rewrite size_rcons addSnnS.
Qed.

(** ** Any coupling with marginal p, at every place of a drafted tree. *)
Theorem descend_lossless n c f : exact_selection -> forall h plans ks, (size ks + h < n)%N ->
  E (grow h plans (c ++ ks)) (fun l => E (descend N V p select h c ks l)
    (fun result => behind p n c f (rcons result.1.1 result.1.2))) = behind p n c f ks.
Proof.
move=> exact h plans ks; apply: (@descend_lossless_where (fun=> True)) => // plans' c' _ K L KL.
by apply: E_ext => l; apply: KL.
Qed.

Variables (State : Type) (plan_of : State -> seq T -> Plan) (height : nat).
Variable next : State -> seq T -> seq (node R T) -> seq T * T * nat -> State.

(** One round with a tree is lossless. *)
Theorem tree_round_lossless_where reachable : exact_where reachable -> handed_down reachable ->
  (forall s c, reachable [:: plan_of s c]) -> lossless_round p (tree_round N V sibling below p select plan_of width height next).
Proof.
move=> exact closed root s [//|n] c f K _ target; rewrite /tree_round E_bind -behind_nothing.
set h := minn _ _; have hn : (h < n.+1)%N by rewrite ltnS geq_minr.
rewrite -(descend_lossless_where c f exact closed (ks := [::]) (root s c) hn) cats0; apply: E_ext => l.
by rewrite E_bind; apply: E_ext => -[[ks x] a]; rewrite E_ret target.
Qed.

(** ** Trees are lossless with a selection that is exact at the reachable places. *)
Theorem tree_lossless_where reachable eos slack n s c : exact_where reachable -> handed_down reachable ->
  (forall s c, reachable [:: plan_of s c]) ->
  same_law (decoded_text N eos (tree_round N V sibling below p select plan_of width height next) slack n s c)
           (target_alone N V eos p n c).
Proof. by move=> exact closed root; apply: decoded_text_law => //; exact: tree_round_lossless_where root. Qed.

(** ** Trees are lossless with any exact selection, round after round. *)
Theorem tree_lossless eos slack n s c : exact_selection ->
  same_law (decoded_text N eos (tree_round N V sibling below p select plan_of width height next) slack n s c)
           (target_alone N V eos p n c).
Proof.
move=> exact; apply: (@tree_lossless_where (fun=> True)) => // plans' c' _ K L KL.
by apply: E_ext => l; apply: KL.
Qed.

End Theorems.
