(** * The target's own draws: sample and match, candidate sets, shared noise, greedy decoding.

    Every token that comes out is drawn from the target.  The drafts only decide how far one round goes: it goes on as
    long as the draw is a candidate.  Candidates may be a chain, a tree, or anything else; they may come from any
    program that does not look at the target's draws, from the past alone (n-grams, prompt lookup, retrieval), or from
    noise that drafter and target share, given the target's draw. *)
From Lossless Require Import Probability OnePosition Texts.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).
Variables (State Draft : Type).
Variable propose : State -> nat -> seq T -> dist R Draft.           (* the candidates: any program *)
Variable p : seq T -> T -> R.
(** Does the round go on behind the draw [z]?  It may look at the state, the candidates, the text, the tokens kept so
    far and the draw. *)
Variable candidate : State -> Draft -> seq T -> seq T -> T -> dist R bool.
Variable next : State -> Draft -> seq T -> seq T * T * nat -> State.

Fixpoint draw_while_candidate g (s : State) (draft : Draft) (c ks : seq T) : dist R (seq T * T * nat) :=
  bind N (draw N V (p (c ++ ks))) (fun z =>
    if g is g'.+1 then
      bind N (candidate s draft c ks z) (fun is_candidate =>
        if is_candidate then draw_while_candidate g' s draft c (rcons ks z) else ret N (ks, z, size ks))
    else ret N (ks, z, size ks)).

Definition own_draws_round (s : State) n (c : seq T) : dist R (State * (seq T * T * nat)) :=
  bind N (propose s n c) (fun draft =>
  bind N (draw_while_candidate n.-1 s draft c [::]) (fun result =>
    ret N (next s draft c result, result))).

(** The greedy text: [n] times the token [best] of the text so far, until one of them ends the sequence. *)
Variable best : seq T -> T.
Fixpoint greedy_text (eos : seq T) n (c : seq T) : seq T :=
  if n is n'.+1 then
    best c :: (if best c \in eos then [::] else greedy_text eos n' (rcons c (best c)))
  else [::].

End Programs.

Section Theorems.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (State Draft : Type) (propose : State -> nat -> seq T -> dist R Draft).
Variable p : seq T -> T -> R.
Variable candidate : State -> Draft -> seq T -> seq T -> T -> dist R bool.
Variable next : State -> Draft -> seq T -> seq T * T * nat -> State.
Hypothesis Hp : forall c, pmf (p c).
Hypothesis Hpropose : forall s n c, proper (propose s n c).
Hypothesis Hcandidate : forall s draft c ks z, proper (candidate s draft c ks z).

(** ** One round of the target's own draws is lossless, whatever the candidates are. *)
Theorem own_draws_round_lossless :
  lossless_round p (own_draws_round N V propose p candidate next).
Proof.
move=> s [//|n] c f K _ target; rewrite /own_draws_round E_bind -behind_nothing.
rewrite -[RHS](Hpropose s n.+1 c); apply: E_ext => draft.
have W : forall g ks, (size ks + g <= n)%N ->
    E (draw_while_candidate N V p candidate g s draft c ks) (fun result => K (next s draft c result, result))
    = behind p n.+1 c f ks.
  elim=> [|g IH] ks gn.
    have kn : (size ks < n.+1)%N by rewrite ltnS (leq_trans _ gn) // leq_addr.
    rewrite /= E_bind E_token -(target_behind _ _ _ kn); apply: eq_bigr => z _.
    by rewrite E_ret target.
  have kn : (size ks < n.+1)%N by rewrite ltnS (leq_trans _ gn) // leq_addr.
  rewrite /= E_bind E_token -(target_behind _ _ _ kn); apply: eq_bigr => z _; congr (_ * _).
  rewrite E_bind -[RHS](Hcandidate s draft c ks z); apply: E_ext => -[]; last by rewrite E_ret target.
  by rewrite IH // size_rcons addSnnS.
by rewrite -(W n [::]) // E_bind; apply: E_ext => result; rewrite E_ret.
Qed.

(** ** The target's own draws are lossless.
    Sample and match with any drafter, candidate sets and candidate trees of the past (n-grams, prompt lookup,
    retrieval, top-k trees), and shared noise: the law of the text is that of the target alone. *)
Theorem own_draws_lossless eos slack n s c :
  same_law (decoded_text N eos (own_draws_round N V propose p candidate next) slack n s c)
           (target_alone N V eos p n c).
Proof. by apply: decoded_text_law => //; exact: own_draws_round_lossless. Qed.

End Theorems.

Section Greedy.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variable best : seq T -> T.     (* the argmax of the target behind a text, ties broken in any fixed way *)

Lemma greedy_alone eos n : forall c (f : seq T -> R),
  E (target_alone N V eos (fun c => point_mass R (best c)) n c) f = f (greedy_text best eos n c).
Proof.
elim: n => [|n IH] c f /=; first by rewrite E_ret.
rewrite E_bind E_token sum_point_mass; case: ifP => _; first by rewrite E_ret.
by rewrite E_bind -(IH _ (fun t => f (best c :: t))); apply: E_ext => t; rewrite E_ret.
Qed.

(** ** Jacobi decoding.
    A block that one sweep leaves as it is, because each of its tokens is the argmax behind those before it, is the
    greedy text. *)
Theorem fixed_point_is_greedy x0 (y : seq T) : forall c,
  (forall i, (i < size y)%N -> nth x0 y i = best (c ++ take i y)) -> y = greedy_text best [::] (size y) c.
Proof.
elim: y => [//|a y IH] c unchanged; have := unchanged 0%N isT; rewrite take0 cats0 /= => <-.
by congr (_ :: _); apply: IH => i iy; rewrite cat_rcons; exact: (unchanged i.+1).
Qed.

Variables (State Draft : Type) (propose : State -> nat -> seq T -> dist R Draft).
Variable candidate : State -> Draft -> seq T -> seq T -> T -> dist R bool.
Variable next : State -> Draft -> seq T -> seq T * T * nat -> State.
Hypothesis Hpropose : forall s n c, proper (propose s n c).
Hypothesis Hcandidate : forall s draft c ks z, proper (candidate s draft c ks z).

(** ** Greedy decoding.
    Keep drafts while they are the argmax of the target, emit the argmax at the first that is not: the text is the
    target's greedy text, for every drafter. *)
Theorem greedy_lossless eos slack n s c f :
  E (decoded_text N eos (own_draws_round N V propose (fun c => point_mass R (best c)) candidate next) slack n s c) f
  = f (greedy_text best eos n c).
Proof.
rewrite own_draws_lossless ?greedy_alone // => c'; exact: pmf_point_mass.
Qed.

End Greedy.
