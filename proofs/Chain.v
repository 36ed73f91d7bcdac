(** * Chains: all drafts first, then judged one after the other.

    The round as engines run it.  A drafter draws up to gamma tokens; how long the draft is may depend on the state, the
    text and every drafted token so far, and the token at which the draft stops is kept in it.  Then a rule keeps or
    replaces the drafts in order; what stands behind a replaced draft is thrown away; a bonus token follows a whole
    draft. *)
From Lossless Require Import Probability OnePosition Texts.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).
Variable State : Type.
Variable plan : State -> seq T -> nat.              (* gamma, from the state and the text *)
Variable more : State -> seq T -> seq T -> bool.    (* draft on, behind the text and the drafts so far? *)
Variable q : State -> seq T -> seq T -> T -> R.     (* the pmf of the next draft behind the text and the drafts so far *)

(** The drafts behind the text [c] and the drafts [ds]: at most [g] more. *)
Fixpoint propose g (s : State) (c ds : seq T) : dist R (seq T) :=
  if g is g'.+1 then
    if more s c ds then
      bind N (draw N V (q s c ds)) (fun d =>
      bind N (propose g' s c (rcons ds d)) (fun later => ret N (d :: later)))
    else ret N [::]
  else ret N [::].

Variable rule : State -> seq T -> seq T -> T -> dist R (option T).  (* state, text, drafts kept so far, draft *)
Variable bonus : seq T -> dist R T.                                 (* the token behind a whole draft *)

(** Judge the drafts [ds] behind the text [c] and the kept drafts [ks]: what is kept, the token behind it, and how many
    drafts are kept. *)
Fixpoint judge (s : State) (c ks ds : seq T) : dist R (seq T * T * nat) :=
  if ds is d :: ds' then
    bind N (rule s c ks d) (fun o =>
      if o is Some x then ret N (ks, x, size ks) else judge s c (rcons ks d) ds')
  else bind N (bonus (c ++ ks)) (fun x => ret N (ks, x, size ks)).

Variable next : State -> seq T -> seq T -> seq T * T * nat -> State.   (* learn from text, drafts and the result *)

(** A round that may emit [n] tokens: at most [n - 1] drafts, so that the token behind them fits. *)
Definition chain_round (s : State) n (c : seq T) : dist R (State * (seq T * T * nat)) :=
  bind N (propose (minn (plan s c) n.-1) s c [::]) (fun ds =>
  bind N (judge s c [::] ds) (fun result => ret N (next s c ds result, result))).

(** The same block, drafted and judged token by token: no draft behind a replaced one is ever drawn. *)
Fixpoint token_by_token g (s : State) (c ks : seq T) : dist R (seq T * T * nat) :=
  let behind := bind N (bonus (c ++ ks)) (fun x => ret N (ks, x, size ks)) in
  if g is g'.+1 then
    if more s c ks then
      bind N (draw N V (q s c ks)) (fun d =>
      bind N (rule s c ks d) (fun o =>
        if o is Some x then ret N (ks, x, size ks) else token_by_token g' s c (rcons ks d)))
    else behind
  else behind.

End Programs.

Section Theorems.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (State : Type) (plan : State -> seq T -> nat) (more : State -> seq T -> seq T -> bool).
Variable q : State -> seq T -> seq T -> T -> R.
Hypothesis Hq : forall s c ds, pmf (q s c ds).
Variable rule : State -> seq T -> seq T -> T -> dist R (option T).
Variable bonus : seq T -> dist R T.
Variable next : State -> seq T -> seq T -> seq T * T * nat -> State.

Lemma E_proposeS g s c ds K : more s c ds ->
  E (propose N V more q g.+1 s c ds) K
  = \sum_d q s c ds d * E (propose N V more q g s c (rcons ds d)) (fun later => K (d :: later)).
Proof.
move=> m; rewrite /= m E_bind E_token; apply: eq_bigr => d _; rewrite E_bind.
by congr (_ * _); apply: E_ext => later; rewrite E_ret.
Qed.

Lemma proper_propose g s c : forall ds, proper (propose N V more q g s c ds).
Proof.
elim: g => [|g IH] ds /=; first exact: proper_ret.
case: ifP => _; last exact: proper_ret.
by apply: proper_bind => [|d]; [exact: proper_draw | apply: proper_bind => // later; exact: proper_ret].
Qed.

(** ** Drafting first changes nothing.
    A block that is drafted whole and then judged has the law of one that is drafted and judged token by token: for any
    rule, exact or not. *)
Theorem draft_first_is_token_by_token g s c : forall ks,
  same_law (bind N (propose N V more q g s c ks) (judge N rule bonus s c ks))
           (token_by_token N V more q rule bonus g s c ks).
Proof.
elim: g => [|g IH] ks K; first by rewrite E_bind /= E_ret.
case m: (more s c ks); last by rewrite E_bind /= m E_ret.
rewrite E_bind E_proposeS //= m E_bind E_token; apply: eq_bigr => d _; congr (_ * _).
rewrite [RHS]E_bind (E_ext _ (fun later => E_bind _ _ _)) E_exchange; apply: E_ext => -[x|].
  by rewrite E_ret proper_propose.
by rewrite -IH E_bind.
Qed.

Lemma E_option (d : dist R (option T)) K :
  E d K = E d (fun o => (o == None)%:R) * K None + \sum_x E d (fun o => (o == Some x)%:R) * K (Some x).
Proof.
rewrite (E_ext d (L := fun o => (o == None)%:R * K None + \sum_x (o == Some x)%:R * K (Some x))); last first.
  case=> [y|] /=; last by rewrite mul1r big1 ?addr0 // => x _; rewrite mul0r.
  by rewrite mul0r add0r (bigD1 y) //= eqxx mul1r big1 ?addr0 // => x /negbTE; rewrite eq_sym => xy; rewrite [Some y == _]xy mul0r.
rewrite E_add E_sum; congr (_ + _); last apply: eq_bigr => x _.
  by rewrite mulrC -E_scale; apply: E_ext => o; rewrite mulrC.
by rewrite mulrC -E_scale; apply: E_ext => o; rewrite mulrC.
Qed.

(** ** The law of a round, position by position.
    With drafts left, a token is kept with [kept_by] and the round goes on with one draft fewer, or it comes out as a
    replacement with [replaced_by] and ends the round.  No draft and no coin is drawn in this recursion. *)
Theorem law_of_one_position g s c ks K : more s c ks ->
  E (token_by_token N V more q rule bonus g.+1 s c ks) K
  = \sum_x kept_by (q s c ks) (rule s c ks) x * E (token_by_token N V more q rule bonus g s c (rcons ks x)) K
    + \sum_x replaced_by (q s c ks) (rule s c ks) x * K (ks, x, size ks).
Proof.
move=> m; rewrite /= m E_bind E_token.
rewrite (eq_bigr (fun d => kept_by (q s c ks) (rule s c ks) d * E (token_by_token N V more q rule bonus g s c (rcons ks d)) K
   + \sum_x q s c ks d * E (rule s c ks d) (fun o => (o == Some x)%:R) * K (ks, x, size ks))); last first.
  move=> d _; rewrite E_bind E_option mulrDr mulrA; congr (_ + _).
  by rewrite mulr_sumr; apply: eq_bigr => x _; rewrite E_ret mulrA.
rewrite big_split /=; congr (_ + _); rewrite exchange_big; apply: eq_bigr => x _.
by rewrite mulr_suml.
Qed.

Variable p : seq T -> T -> R.
Hypothesis Hp : forall c, pmf (p c).
Hypothesis exact : forall s c ks, exact_rule (p (c ++ ks)) (q s c ks) (rule s c ks).
Hypothesis bonus_is_target : forall c, same_law (bonus c) (draw N V (p c)).

Lemma token_by_token_lossless n c f s : forall g ks, (size ks + g < n)%N ->
  E (token_by_token N V more q rule bonus g s c ks) (fun result => behind p n c f (rcons result.1.1 result.1.2))
  = behind p n c f ks.
Proof.
set L := fun result : seq T * T * nat => _.
have ending ks : (size ks < n)%N ->
    E (bind N (bonus (c ++ ks)) (fun x => ret N (ks, x, size ks))) L = behind p n c f ks.
  move=> kn; rewrite E_bind bonus_is_target E_token -(target_behind _ _ _ kn).
  by apply: eq_bigr => x _; rewrite E_ret.
elim=> [|g IH] ks gn /=; first by apply: ending; rewrite addn0 in gn.
have kn : (size ks < n)%N by apply: leq_ltn_trans gn; rewrite leq_addr.
case: ifP => _; last exact: ending.
rewrite E_bind E_token -(target_behind _ _ _ kn) -(exact s c ks (fun x => behind p n c f (rcons ks x))).
apply: eq_bigr => d _; congr (_ * _); rewrite E_bind; apply: E_ext => -[x|] /=; first by rewrite E_ret.
by rewrite IH // size_rcons addSnnS.
Qed.

(** ** A chain with an exact rule is lossless.
    Any drafter, any length rule that keeps the token at which it stops, any state that is carried from round to round:
    the round, followed by the target, is the target. *)
Theorem chain_round_lossless : lossless_round p (chain_round N V plan more q rule bonus next).
Proof.
move=> s [//|n] c f K _ target; rewrite /chain_round E_bind -behind_nothing.
set g := minn _ _; have gn : (g < n.+1)%N by rewrite ltnS geq_minr.
rewrite -(token_by_token_lossless _ _ s (ks := [::]) gn) -draft_first_is_token_by_token E_bind.
by apply: E_ext => ds; rewrite E_bind; apply: E_ext => -[[ks x] a]; rewrite E_ret target.
Qed.

(** ** The main theorem.
    Draft any number of tokens from any drafter by any such length rule, judge each with an exact rule, emit a bonus
    token from the target behind a whole draft, cut the block at the end of sequence and at the horizon, and repeat:
    the law of the text is that of the target alone. *)
Theorem chain_lossless eos slack n s c :
  same_law (decoded_text N eos (chain_round N V plan more q rule bonus next) slack n s c)
           (target_alone N V eos p n c).
Proof. by apply: decoded_text_law => //; exact: chain_round_lossless. Qed.

End Theorems.

Section Instances.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (State : Type) (plan : State -> seq T -> nat) (more : State -> seq T -> seq T -> bool).
Variables (p : seq T -> T -> R) (q : State -> seq T -> seq T -> T -> R).
Hypotheses (Hp : forall c, pmf (p c)) (Hq : forall s c ds, pmf (q s c ds)).
Variable next : State -> seq T -> seq T -> seq T * T * nat -> State.

Definition target_bonus c := draw N V (p c).

(** ** Speculative sampling is lossless.
    Every vocabulary, every pair of pmfs that depend on the whole text, every horizon, every gamma, every rule for the
    length of the draft that knows the state, the text and all drafts so far and keeps the token at which it stops. *)
Theorem speculative_sampling_lossless eos slack n (s : State) c :
  same_law (decoded_text N eos
      (chain_round N V plan more q (fun s c ks => speculative_rule N V (p (c ++ ks)) (q s c ks)) target_bonus next) slack n s c)
    (target_alone N V eos p n c).
Proof. by apply: chain_lossless => // s' c' ks; apply: speculative_rule_exact. Qed.

(** ** Sample and match is lossless for every drafter, whatever pmf its drafts have. *)
Theorem sample_and_match_lossless eos slack n (s : State) c :
  same_law (decoded_text N eos
      (chain_round N V plan more q (fun s c ks => match_rule N V (p (c ++ ks))) target_bonus next) slack n s c)
    (target_alone N V eos p n c).
Proof. by apply: chain_lossless => // s' c' ks; apply: match_rule_exact. Qed.

(** ** Dropping unlikely drafts is lossless with the residual of the part that may stay. *)
Theorem dropping_lossless (sure : State -> seq T -> seq T -> T -> bool) eos slack n (s : State) c :
  same_law (decoded_text N eos
      (chain_round N V plan more q (fun s c ks => drop_rule N V (sure s c ks) (p (c ++ ks)) (q s c ks)) target_bonus next) slack n s c)
    (target_alone N V eos p n c).
Proof. by apply: chain_lossless => // s' c' ks; apply: drop_rule_exact. Qed.

End Instances.
