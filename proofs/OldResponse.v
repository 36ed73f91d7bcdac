(** * SPEC-RL: an old response is the draft, and what follows its first rejection is decoded without drafts. *)
From Lossless Require Import Probability OnePosition Texts Chain.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).
Variables (eos : seq T) (a : seq T -> T -> R) (p q : seq T -> T -> R).

(** Judge a response behind the text [c] and the kept tokens [ks]: kept with [a], cut at the first rejection, where the
    target draws; nothing follows a response that is kept whole. *)
Fixpoint judge_response (c ks ds : seq T) : dist R (seq T * nat) :=
  if ds is d :: ds' then
    bind N (flip N (a (c ++ ks) d)) (fun kept =>
      if kept then judge_response c (rcons ks d) ds'
      else bind N (draw N V (p (c ++ ks))) (fun x => ret N (rcons ks x, size ks)))
  else ret N (ks, size ks).

(** A response goes on until it has ended. *)
Definition not_ended (_ : bool) (c ds : seq T) : bool := if ds is d :: ds' then last d ds' \notin eos else true.

(** The state says whether the response has been used. *)
Definition response_round (used : bool) n (c : seq T) : dist R (bool * (seq T * T * nat)) :=
  let decode_on := bind N (draw N V (p c)) (fun x => ret N (true, ([::], x, 0%N))) in
  if used then decode_on else
  bind N (propose N V not_ended (fun _ c ds => q (c ++ ds)) n false c [::]) (fun ds =>
  bind N (judge_response c [::] ds) (fun block =>
    if block.1 is x :: b then ret N (true, (belast x b, last x b, block.2)) else decode_on)).

End Programs.

Section Law.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (eos : seq T) (p q : seq T -> T -> R) (l : R).
Hypotheses (Hp : forall c, pmf (p c)) (Hq : forall c, pmf (q c)) (l0 : 0 <= l).

Definition reuse c : T -> R := accept_probability N (fun x => l * p c x) (q c).

(** The law of a text that begins within the old response: min(q, l p) while it is kept, the missing mass spread by p at
    the cut, and p alone behind it. *)
Fixpoint reused n c (f : seq T -> R) : R :=
  if n is n'.+1 then
    \sum_x Num.min (q c x) (l * p c x) * (if x \in eos then f [:: x] else reused n' (rcons c x) (fun t => f (x :: t)))
    + (1 - \sum_y Num.min (q c y) (l * p c y)) * E (target_alone N V eos p n'.+1 c) f
  else f [::].

Lemma reused_ext n : forall c f g, (forall t, f t = g t) -> reused n c f = reused n c g.
Proof.
elim: n => [|n IH] c f g fg; rewrite [LHS]/= [RHS]/= ?fg //; congr (_ + _ * _).
  by apply: eq_bigr => x _; rewrite fg (IH _ _ (fun t => g (x :: t))).
exact: E_ext.
Qed.

Local Notation round := (response_round N V eos reuse p q).
Local Notation texts fuel n used c f := (E (decode N eos round 0 fuel n used c) (fun rounds => f (text_of rounds))).

(** Once the response has been used, the target decodes alone. *)
Lemma used_is_target : forall fuel n c f, (n <= fuel)%N -> texts fuel n true c f = E (target_alone N V eos p n c) f.
Proof.
elim=> [|fuel IH] [|n] c f // nf; try by rewrite /= !E_ret.
rewrite /= !E_bind !E_token; apply: eq_bigr => x _; congr (_ * _).
rewrite E_ret /= E_bind; case: (x \in eos) => /=.
  have stop k K : E (decode N eos round 0 k 0 true (c ++ [:: x])) K = K [::] by case: k => [|k]; rewrite /= E_ret.
  by rewrite stop !E_ret.
rewrite subn1 /= E_bind cats1 [RHS](E_ext _ (L := fun t => f (x :: t))) => [|t]; last by rewrite E_ret.
by rewrite -IH //; apply: E_ext => rounds; rewrite E_ret.
Qed.

(** What is left of a decode behind a block that a response round returns. *)
Definition after_block n c (f : seq T -> R) (b : seq T) : R :=
  let: (new, remaining) := commit eos b n in E (target_alone N V eos p remaining (c ++ new)) (fun t => f (new ++ t)).

Lemma until_end_kept (ks b : seq T) : ~~ has (fun y => y \in eos) ks -> until_end eos (ks ++ b) = ks ++ until_end eos b.
Proof. by elim: ks => [|x ks IH] //=; rewrite negb_or => /andP[/negbTE-> /IH->]. Qed.

Lemma after_one g n c f ks x : ~~ has (fun y => y \in eos) ks -> n = (size ks + g.+1)%N ->
  after_block n c f (rcons ks x)
  = (if x \in eos then f (rcons ks x) else E (target_alone N V eos p g (rcons (c ++ ks) x)) (fun t => f (rcons ks x ++ t))).
Proof.
move=> no_end nE; rewrite /after_block /commit take_oversize; last by rewrite size_rcons nE addnS ltnS leq_addr.
rewrite -cats1 until_end_kept //= has_cat (negbTE no_end) /=.
rewrite (_ : (if x \in eos then [::] else [::]) = [::]) ?if_same // orbF; case: ifP => _; first by rewrite E_ret cats0.
by rewrite (_ : (n - size (ks ++ [:: x]))%N = g) ?cats1 ?rcons_cat // -?cats1 ?size_cat nE subnDl subn1.
Qed.

(** A response, drafted whole and then judged: token by token. *)
Lemma E_response n c f : forall g ks, ~~ has (fun y => y \in eos) ks -> n = (size ks + g)%N ->
  E (propose N V (not_ended eos) (fun _ c ds => q (c ++ ds)) g false c ks) (fun ds =>
    E (judge_response N V reuse p c ks ds) (fun block => after_block n c f block.1))
  = reused g (c ++ ks) (fun t => f (ks ++ t)).
Proof.
elim=> [|g IH] ks no_end nE.
  rewrite /= !E_ret /after_block /commit addn0 in nE *.
  rewrite take_oversize ?nE // -[ks in until_end _ ks]cats0 until_end_kept // cats0 (negbTE no_end) subnn /=.
  by rewrite E_ret cats0.
have on : not_ended eos false c ks.
  case e: ks => [|d ds] //=; apply: contra no_end => ended.
  by apply/hasP; exists (last d ds); rewrite // e mem_last.
rewrite E_proposeS //.
pose rest := E (target_alone N V eos p g.+1 (c ++ ks)) (fun t => f (ks ++ t)).
have missing : \sum_x p (c ++ ks) x * after_block n c f (rcons ks x) = rest.
  rewrite /rest /= E_bind E_token; apply: eq_bigr => x _; rewrite (after_one c f x no_end nE); congr (_ * _).
  case: ifP => _; first by rewrite E_ret cats1.
  by rewrite E_bind; apply: E_ext => t; rewrite E_ret cat_rcons.
have Hu (s : bool) c' ds : pmf (q (c' ++ ds)) by [].
rewrite (eq_bigr (fun d => Num.min (q (c ++ ks) d) (l * p (c ++ ks) d)
    * (if d \in eos then f (ks ++ [:: d]) else reused g (rcons (c ++ ks) d) (fun t => f (ks ++ d :: t)))
  + (q (c ++ ks) d - Num.min (q (c ++ ks) d) (l * p (c ++ ks) d)) * rest)) => [|d _].
  by rewrite big_split -mulr_suml sumrB (Hq _).2.
have keptE : q (c ++ ks) d * reuse (c ++ ks) d = Num.min (q (c ++ ks) d) (l * p (c ++ ks) d).
  by rewrite /reuse (kept_mass (p := fun x => l * p (c ++ ks) x)) ?mulr_ge0 ?(Hp _).1 ?(Hq _).1.
rewrite -keptE (_ : q (c ++ ks) d - _ = q (c ++ ks) d * (1 - reuse (c ++ ks) d)); last by rewrite mulrBr mulr1.
rewrite -!mulrA -mulrDr; congr (_ * _).
rewrite (E_ext _ (L := fun later => reuse (c ++ ks) d * E (judge_response N V reuse p c (rcons ks d) later) (fun block => after_block n c f block.1)
    + (1 - reuse (c ++ ks) d) * rest)) => [|later]; last first.
  rewrite /= E_bind E_flip E_bind E_token -missing; congr (_ + _ * _).
  by apply: eq_bigr => x _; rewrite E_ret.
rewrite E_add (proper_propose _ Hu) E_scale; congr (_ * _ + _).
case: ifP => [ended|not_end].
  have -> : propose N V (not_ended eos) (fun _ c ds => q (c ++ ds)) g false c (rcons ks d) = ret N [::].
    case: (g) => [|g'] //=; rewrite /not_ended; case: (ks) => [|k ks'] /=; first by rewrite ended.
    by rewrite last_rcons ended.
  by rewrite !E_ret /= (after_one c f d no_end nE) ended cats1.
rewrite IH ?has_rcons ?not_end ?size_rcons ?addSnnS // rcons_cat.
by apply: reused_ext => t; rewrite cat_rcons.
Qed.

(** ** SPEC-RL: min(q, l p) while the old response is kept, and p alone from its first rejection on. *)
Theorem old_response_law n c f : E (decoded_text N eos round 0 n false c) f = reused n c f.
Proof.
rewrite /decoded_text E_bind (E_ext _ (L := fun rounds => f (text_of rounds))) => [|rounds]; last by rewrite E_ret.
case: n => [|n]; first by rewrite /= E_ret.
have whole : reused n.+1 c f = reused n.+1 (c ++ [::]) (fun t => f ([::] ++ t)) by rewrite cats0.
rewrite whole -(E_response (n := n.+1) c f (ks := [::])) // E_bind E_bind.
apply: E_ext => ds; rewrite E_bind; apply: E_ext => -[[|x b] k].
  have -> : after_block n.+1 c f ([::], k).1 = texts n.+1 n.+1 true c f by rewrite used_is_target // -[in RHS](cats0 c).
  by rewrite [RHS]E_bind.
rewrite E_ret [rcons _ _](_ : _ = x :: b); last by rewrite -lastI.
rewrite [after_block _ _ _ _]/after_block /=.
set new := x :: _; set remaining := if _ then _ else _.
rewrite E_bind -(used_is_target (fuel := n)); last first.
  by rewrite /remaining; case: ifP => // _; rewrite subSS leq_subr.
by apply: E_ext => rounds; rewrite E_ret.
Qed.

End Law.
