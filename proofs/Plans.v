(** * Transport plans and canonical two-step selection: any flow from sets of candidates into p.

    Both rules read the set S of the candidates of a place.  A plan moves the mass [flow S v] from S to its candidate v.
    No property of the plan is used but that it is one: it takes from no set more than its probability, and gives no token
    more than p has.  So the search for the best plan may be any search. *)
From Lossless Require Import Probability OnePosition Texts Tree Selection.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).
Implicit Types (r : T -> R) (l : seq (T * (T -> R))).

(** Accept v with probability [share r l v]; if none is accepted draw from [owed r l]. *)
Definition plan_select (share owed : (T -> R) -> seq (T * (T -> R)) -> T -> R) r l : dist R (T * bool) :=
  bind N (possible N (rcons [seq (share r l v, Some v) | v <- V] (minus N (one N) (total N V (share r l)), None)))
    (fun o => if o is Some v then ret N (v, true) else bind N (draw N V (owed r l)) (fun x => ret N (x, false))).

(** Choose a candidate from [choice r l], then speculative sampling with the law [chosen r l] of the choice as q. *)
Definition two_step_select (choice chosen : (T -> R) -> seq (T * (T -> R)) -> T -> R) r l : dist R (T * bool) :=
  bind N (draw N V (choice r l)) (fun x => bind N (speculative_rule N V r (chosen r l) x) (fun o =>
    ret N (odflt x o, o == None))).

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
Local Notation candidates := (candidates N V sibling below (@undrawn R T Plan) width).
Local Notation siblings := (siblings N V sibling below (@undrawn R T Plan)).
Local Notation proper_place plans c := (proper_candidates below Hsibling width (fun plan c => proper_ret (plan : Plan)) plans c).

Lemma E_some_or_none (f : T -> R) w (K : option T -> R) :
  E (rcons [seq (f v, Some v) | v <- V] (w, None)) K = \sum_v f v * K (Some v) + w * K None.
Proof. by rewrite /E -cats1 big_cat big_seq1 big_map big_enum. Qed.

(** Whether a place has candidates is decided before they are drawn. *)
Lemma empty_or_not plans c :
  (forall K, E (candidates plans c) K = K [::]) \/ surely (candidates plans c) (fun l => l <> [::]).
Proof.
elim: plans => [|plan plans IH]; first by left=> K; rewrite E_ret.
have [none|some] : (forall K, E (siblings width plan c [::]) K = K [::]) \/ surely (siblings width plan c [::]) (fun l => l <> [::]).
- case: width => [|w]; first by left=> K; rewrite E_ret.
  case e: (sibling plan c [::]) => [u|]; last by left=> K; rewrite /= e E_ret.
  right=> K L KL; rewrite !(E_siblingsS _ _ _ _ e); apply: eq_bigr => d _; congr (_ * _).
  by rewrite !E_ret; apply: E_ext => later; apply: KL.
- by case: IH => [all_none|one]; [left | right] => [K|K L KL]; rewrite !E_candidates_cons !none //; apply: one.
- right=> K L KL; rewrite !E_candidates_cons; apply: some => -[|v l] // _; apply: E_ext => l'.
  exact: KL.
Qed.

(** A rule that is exact wherever there are candidates is an exact selection. *)
Lemma exact_where_some (reachable : seq Plan -> Prop) select :
  (forall plans c F, reachable plans -> surely (candidates plans c) (fun l => l <> [::]) ->
     E (candidates plans c) (fun l => E (select (p c) (map fst l)) (fun xa => F xa.1)) = \sum_x p c x * F x) ->
  exact_where sibling below width p select reachable.
Proof.
move=> exact plans c F reached; have [none|some] := empty_or_not plans c.
  by rewrite none /= E_bind E_token; apply: eq_bigr => x _; rewrite E_ret.
by rewrite -(exact plans c F reached some); apply: some => -[].
Qed.

Definition set_of (l : seq (T * (T -> R))) : {set T} := [set x in map fst l].

(** The probability that the candidates of a place are the set S. *)
Definition set_law plans c (S : {set T}) : R := E (candidates plans c) (fun l => (set_of (map fst l) == S)%:R).

Lemma E_set plans c (G : {set T} -> R) :
  E (candidates plans c) (fun l => G (set_of (map fst l))) = \sum_S set_law plans c S * G S.
Proof.
rewrite (E_ext _ (L := fun l => \sum_S (set_of (map fst l) == S)%:R * G S)) => [|l]; last first.
  by rewrite (bigD1 (set_of (map fst l))) //= eqxx mul1r big1 ?addr0 // => S /negbTE; rewrite eq_sym => ->; rewrite mul0r.
by rewrite E_sum; apply: eq_bigr => S _; rewrite mulrC -E_scale; apply: E_ext => l; rewrite mulrC.
Qed.

Variable reachable : seq Plan -> Prop.
(** What a plan may depend on besides p: anything about the candidates that is not drawn, as their number and pmfs. *)
Variables (Key : Type) (key : seq (T * (T -> R)) -> Key) (key_of : seq Plan -> seq T -> Key).
Hypothesis Hkey : forall plans c, reachable plans -> surely (candidates plans c) (fun l => l <> [::]) ->
  surely (candidates plans c) (fun l => key (map fst l) = key_of plans c).

(** ** Transport plans: any flow that is feasible. *)
Variables (flow : (T -> R) -> Key -> {set T} -> T -> R) (sets : Key -> {set T} -> R).
Definition moved r k v : R := \sum_S flow r k S v.
Definition plan_share r l v : R := flow r (key l) (set_of l) v / sets (key l) (set_of l).
Definition plan_owed r l : T -> R := excess_law N V r (moved r (key l)).

Hypothesis Hsets : forall plans c S, reachable plans -> sets (key_of plans c) S = set_law plans c S.
Hypothesis flow_ge0 : forall r k S v, 0 <= flow r k S v.
Hypothesis flow_fits : forall r k S, \sum_v flow r k S v <= sets k S.
Hypothesis flow_owed : forall r k v, pmf r -> moved r k v <= r v.

(** Accept a candidate as the plan says, else draw what p is owed: exact for every feasible plan. *)
Theorem transport_plan_exact : exact_where sibling below width p (plan_select N V plan_share plan_owed) reachable.
Proof.
apply: exact_where_some => plans c F reached some; pose k := key_of plans c; pose r := p c.
pose share S v := flow r k S v / sets k S; pose owed := excess_law N V r (moved r k).
have rest v : (1 - \sum_y moved r k y) * owed v = r v - moved r k v.
  have fits y : excess N r (moved r k) y = r y - moved r k y by rewrite excessE max_l // subr_ge0; exact: flow_owed (Hp c).
  have <- : \sum_y excess N r (moved r k) y = 1 - \sum_y moved r k y.
    by rewrite (eq_bigr _ (fun y _ => fits y)) sumrB (Hp c).2.
  by rewrite excess_lawE fits.
have shares v : E (candidates plans c) (fun l => share (set_of (map fst l)) v) = moved r k v.
  rewrite (E_set plans c (fun S => share S v)); apply: eq_bigr => S _; rewrite -Hsets // -/k /share.
  have [zero|nz] := eqVneq (sets k S) 0; last by rewrite mulrCA divff ?mulr1.
  have /psumr_eq0P all0 : \sum_v flow r k S v = 0 by move: (flow_fits r k S); rewrite zero => le; apply/eqP; rewrite eq_le le sumr_ge0.
  by rewrite zero mul0r all0.
rewrite -(@transport_exact _ _ _ (candidates plans c) (fun l => share (set_of (map fst l))) r owed _ shares rest (proper_place plans c) F).
apply: (Hkey reached some) => l keyE; rewrite /plan_select E_bind E_possible E_some_or_none total_token.
have same v : plan_share (p c) (map fst l) v = share (set_of (map fst l)) v by rewrite /plan_share keyE.
congr (_ + _); first by apply: eq_bigr => v _; rewrite E_ret same.
rewrite (eq_bigr _ (fun v _ => same v)) /plan_owed keyE E_bind E_token; congr (_ * _).
by apply: eq_bigr => x _; rewrite E_ret.
Qed.

(** ** Canonical two-step selection: any choice from the set, with its law in the place of q. *)
Variable weight : (T -> R) -> Key -> {set T} -> T -> R.
Hypothesis pmf_weight : forall r k S, pmf (weight r k S).
Definition canonical_choice r l : T -> R := weight r (key l) (set_of l).
Definition canonical_law r l : T -> R := fun v => \sum_S sets (key l) S * weight r (key l) S v.

(** Choose a candidate, then speculative sampling with the law of the choice: exact for every choice. *)
Theorem canonical_exact : exact_where sibling below width p (two_step_select N V canonical_choice canonical_law) reachable.
Proof.
apply: exact_where_some => plans c F reached some; pose k := key_of plans c; pose r := p c.
pose chosen v := \sum_S sets k S * weight r k S v.
have law G : E (candidates plans c) (fun l => E (draw N V (weight r k (set_of (map fst l)))) G) = \sum_x chosen x * G x.
  rewrite (E_set plans c (fun S => E (draw N V (weight r k S)) G)).
  under eq_bigr do rewrite E_token mulr_sumr.
  rewrite exchange_big; apply: eq_bigr => x _; rewrite /chosen mulr_suml; apply: eq_bigr => S _.
  by rewrite -Hsets // mulrA.
have Hchosen : pmf chosen.
  split=> [v|].
    apply: sumr_ge0 => S _; rewrite mulr_ge0 ?(pmf_weight _ _ _).1 //.
    by apply: le_trans (flow_fits r k S); apply: sumr_ge0.
  have := law (fun=> 1); rewrite (eq_bigr chosen) => [<-|x _]; last by rewrite mulr1.
  rewrite (E_ext _ (L := fun=> 1)) => [|l]; last by rewrite (proper_draw (pmf_weight _ _ _)).
  exact: (proper_place plans c).
rewrite -(@two_step_exact _ _ _ (candidates plans c) (fun l => draw N V (weight r k (set_of (map fst l)))) r chosen (Hp c) Hchosen law F).
apply: (Hkey reached some) => l keyE.
rewrite /two_step_select /canonical_choice /canonical_law keyE.
by [].
Qed.

End Theorems.
