(** * Selection rules for several candidates at one place.

    Recursive rejection, candidate sets, two-step selection, transport plans, K-SEQ: each is exact, so by
    [tree_lossless] a drafted tree that is verified with it is lossless. *)
From Lossless Require Import Probability OnePosition Texts Tree.

Section Trees.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (Plan : Type) (sibling : Plan -> seq T -> seq T -> option (T -> R)).
Variable below : Plan -> seq T -> seq T -> T -> Plan.
Hypothesis Hsibling : forall plan c earlier u, sibling plan c earlier = Some u -> pmf u.
Variable width : nat.
Variable p : seq T -> T -> R.
Hypothesis Hp : forall c, pmf (p c).
Local Notation candidates := (candidates N V sibling below (@undrawn R T Plan) width).
Local Notation siblings := (siblings N V sibling below (@undrawn R T Plan)).

Lemma proper_undrawn plan (c : seq T) : proper (@undrawn R T Plan plan c).
Proof. exact: proper_ret. Qed.

(** ** Candidate sets.
    Draw from the target and go on if the draw is a candidate: exact for every tree, drawn or deterministic. *)
Theorem look_up_exact : exact_selection sibling below width p (look_up N V).
Proof.
move=> plans c F; rewrite -[RHS](proper_candidates below Hsibling width proper_undrawn plans c); apply: E_ext => l.
case: (map fst l) => [|v l'] /=; rewrite E_bind E_token; apply: eq_bigr => x _; by rewrite E_ret.
Qed.

Lemma E_try_cons (owed : T -> R) d u l F :
  E (try_in_turn N V owed ((d, u) :: l)) (fun xa => F xa.1)
  = accept_probability N owed u d * F d
    + (1 - accept_probability N owed u d) * E (try_in_turn N V (excess_law N V owed u) l) (fun xa => F xa.1).
Proof. by rewrite /= E_bind E_flip E_ret. Qed.

Lemma E_affine A (d : dist R A) a b K : proper d -> E d (fun x => a + b * K x) = a + b * E d K.
Proof. by move=> dp; rewrite E_add E_scale dp. Qed.

(** ** Recursive rejection (SpecInfer's siblings, RSD, Sequoia, EAGLE-1, SWIFT).
    Try the candidates in the order in which they were drawn against what is still owed.  The pmf of a candidate, and
    whether there is one more, may depend on the text and on its earlier siblings. *)
Theorem try_in_turn_exact : exact_selection sibling below width p (try_in_turn N V).
Proof.
move=> plans c F.
transitivity (E (candidates plans c) (fun l => E (try_in_turn N V (p c) (map fst l)) (fun xa => F xa.1))).
  by apply: E_ext => -[|[[d u] plan] l].
move: (p c) (Hp c) => owed; elim: plans owed => [|plan plans IH] owed Ho.
  by rewrite E_ret /= E_bind E_token; apply: eq_bigr => x _; rewrite E_ret.
rewrite E_candidates_cons.
suff W : forall w earlier owed, pmf owed ->
    E (siblings w plan c earlier) (fun l => E (candidates plans c) (fun l' =>
      E (try_in_turn N V owed (map fst (l ++ l'))) (fun xa => F xa.1))) = \sum_x owed x * F x by apply: W.
elim=> [|w IHw] earlier {Ho} {}owed Ho; first by rewrite E_ret IH.
case e: (sibling plan c earlier) => [u|]; last by rewrite /= e E_ret IH.
rewrite (E_siblingsS _ _ _ _ e) -(speculative_rule_exact Ho (Hsibling e) F); apply: eq_bigr => d _; congr (_ * _).
rewrite E_accept_or_replace E_ret -(IHw (rcons earlier d) _ (pmf_excess_law u Ho)).
rewrite -(E_affine _ _ _ (proper_siblings below Hsibling proper_undrawn w plan c _)); apply: E_ext => later.
rewrite -(E_affine _ _ _ (proper_candidates below Hsibling width proper_undrawn plans c)); apply: E_ext => l'.
exact: E_try_cons.
Qed.

(** ** Two-step selection.
    Choose a candidate in any way, then speculative sampling with the law of the choice in the place of q: exact for
    every way to choose (canonical importance sampling). *)
Theorem two_step_exact (C : Type) (drawn : dist R C) (pick : C -> dist R T) (r chosen : T -> R) : pmf r -> pmf chosen ->
  (forall G, E drawn (fun l => E (pick l) G) = \sum_x chosen x * G x) -> forall F,
  E drawn (fun l => E (bind N (pick l) (fun x => bind N (speculative_rule N V r chosen x) (fun o =>
    ret N (odflt x o, o == None)))) (fun xa => F xa.1)) = \sum_x r x * F x.
Proof.
move=> Hr Hc law F; rewrite -(speculative_rule_exact Hr Hc F) /emitted -law; apply: E_ext => l.
rewrite E_bind; apply: E_ext => x; rewrite E_bind; apply: E_ext => o.
by rewrite E_ret.
Qed.

(** ** Transport plans (SpecTr's optimum; any coupling of the candidates with a token of law p).
    Given what was drawn, accept v with probability [move l v], else draw from [owed].  If the plan moves the mass m(v)
    to v in all, and what is not moved, drawn from [owed], is the rest p - m, then the rule is exact. *)
Theorem transport_exact (C : Type) (drawn : dist R C) (move : C -> T -> R) (r owed m : T -> R) :
  (forall v, E drawn (fun l => move l v) = m v) ->
  (forall v, (1 - \sum_y m y) * owed v = r v - m v) -> proper drawn -> forall F,
  E drawn (fun l => \sum_v move l v * F v + (1 - \sum_v move l v) * \sum_v owed v * F v) = \sum_x r x * F x.
Proof.
move=> moved rest Hd F; rewrite E_add.
have -> : E drawn (fun l => \sum_v move l v * F v) = \sum_v m v * F v.
  by rewrite E_sum; apply: eq_bigr => v _; rewrite -moved mulrC -E_scale; apply: E_ext => l; rewrite mulrC.
have -> : E drawn (fun l => (1 - \sum_v move l v) * \sum_v owed v * F v) = (1 - \sum_y m y) * \sum_v owed v * F v.
  set S := \sum_v owed v * F v.
  rewrite (E_ext _ (L := fun l => S + - S * \sum_v move l v)) ?E_affine // => [|l]; last first.
    by rewrite mulrBl mul1r mulrC mulNr.
  rewrite E_sum (eq_bigr _ (fun v _ => moved v)).
  by rewrite mulrBl mul1r mulNr (mulrC S).
rewrite mulr_sumr -big_split; apply: eq_bigr => v _ /=.
by rewrite mulrA rest -mulrDl addrC subrK.
Qed.

End Trees.
