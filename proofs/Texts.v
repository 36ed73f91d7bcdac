(** * From rounds to texts.

    A decoder repeats rounds.  A round returns a block of tokens; the block is cut after its first end-of-sequence token
    and at the horizon, and the next round begins behind it.  If one round followed by sampling from the target is
    lossless, then so are all rounds together: the law of the text is that of the target alone. *)
From Lossless Require Import Probability.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).
Variable eos : seq T.          (* the end-of-sequence tokens *)
Variable p : seq T -> T -> R.  (* the target: the pmf of the next token behind a text *)

(** The target alone: [n] new tokens behind the text [c], fewer if one of them ends the sequence. *)
Fixpoint target_alone n (c : seq T) : dist R (seq T) :=
  if n is n'.+1 then
    bind N (draw N V (p c)) (fun x =>
      if x \in eos then ret N [:: x]
      else bind N (target_alone n' (rcons c x)) (fun text => ret N (x :: text)))
  else ret N [::].

(** A block up to its first end-of-sequence token. *)
Fixpoint until_end (b : seq T) : seq T :=
  if b is x :: b' then x :: (if x \in eos then [::] else until_end b') else [::].

(** What is committed of a block when [n] tokens may still be emitted, and how many may be emitted afterwards. *)
Definition commit (b : seq T) n : seq T * nat :=
  let new := until_end (take n b) in (new, if has (fun y => y \in eos) new then 0%N else (n - size new)%N).

Variable State : Type.
(** A round gets the state, the number of tokens that it may emit, and the text.  It returns the next state, the tokens
    that it keeps, one more token, and how many of them are accepted drafts. *)
Variable round : State -> nat -> seq T -> dist R (State * (seq T * T * nat)).
Variable slack : nat.          (* tokens that a round may emit beyond the horizon; 0 where drafts are planned to fit *)

(** Rounds until nothing remains: a list of committed blocks, each with the number of its tokens that are accepted
    drafts.  [fuel] bounds the number of rounds; [n] is enough. *)
Fixpoint decode fuel n (s : State) (c : seq T) : dist R (seq (seq T * nat)) :=
  if n is 0%N then ret N [::] else
  if fuel is fuel'.+1 then
    bind N (round s (slack + n) c) (fun result =>
      let: (s', (kept, last, accepted)) := result in
      let: (new, remaining) := commit (rcons kept last) n in
      bind N (decode fuel' remaining s' (c ++ new)) (fun rounds => ret N ((new, minn accepted (size new)) :: rounds)))
  else ret N [::].

(** The text of a list of rounds. *)
Definition text_of (rounds : seq (seq T * nat)) : seq T := flatten (map fst rounds).

(** The text of a whole decode of at most [n] new tokens behind the prompt [c]. *)
Definition decoded_text n (s : State) (c : seq T) : dist R (seq T) :=
  bind N (decode n n s c) (fun rounds => ret N (text_of rounds)).

End Programs.

Section Theorems.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variable p : seq T -> T -> R.
Hypothesis Hp : forall c, pmf (p c).

(** The target alone, without an end of sequence. *)
Definition sample n c := target_alone N V [::] p n c.

Lemma E_sampleS n c f :
  E (sample n.+1 c) f = \sum_x p c x * E (sample n (rcons c x)) (fun t => f (x :: t)).
Proof.
rewrite /sample /= E_bind E_token; apply: eq_bigr => x _; rewrite E_bind.
by congr (_ * _); apply: E_ext => t; rewrite E_ret.
Qed.

Lemma E_sample0 c f : E (sample 0 c) f = f [::].
Proof. by rewrite /sample /= E_ret. Qed.

Lemma proper_sample n : forall c, proper (sample n c).
Proof.
elim: n => [|n IH] c a; first by rewrite E_sample0.
by rewrite E_sampleS (eq_bigr (fun x => p c x * a)) -?mulr_suml ?(Hp c).2 ?mul1r // => x _; rewrite IH.
Qed.

(** Longer samples, cut, are shorter samples. *)
Lemma sample_take n m : forall c f, E (sample (m + n) c) (fun t => f (take n t)) = E (sample n c) f.
Proof.
elim: n => [|n IH] c f.
  rewrite (E_ext _ (L := fun=> f [::])) => [|t]; last by rewrite take0.
  by rewrite proper_sample E_sample0.
rewrite addnS !E_sampleS; apply: eq_bigr => x _; congr (_ * _).
by rewrite -[RHS]IH; apply: E_ext => t /=.
Qed.

(** Ending at the end of sequence is sampling on and cutting. *)
Lemma target_alone_cut eos n : forall c f,
  E (target_alone N V eos p n c) f = E (sample n c) (fun t => f (until_end eos t)).
Proof.
elim: n => [|n IH] c f; first by rewrite E_sample0 /= E_ret.
rewrite E_sampleS /= E_bind E_token; apply: eq_bigr => x _; congr (_ * _) => /=.
case: ifP => _; first by rewrite E_ret proper_sample.
by rewrite E_bind IH; apply: E_ext => t; rewrite E_ret.
Qed.

Lemma until_end_cat (eos b t : seq T) :
  until_end eos (b ++ t) = until_end eos b ++ (if has (fun y => y \in eos) (until_end eos b) then [::] else until_end eos t).
Proof.
elim: b => [|x b IH] //=; case: (x \in eos) => //=.
by rewrite IH.
Qed.

Lemma until_end_no_end (eos b : seq T) : ~~ has (fun y => y \in eos) (until_end eos b) -> until_end eos b = b.
Proof. by elim: b => [|x b IH] //=; case: (x \in eos) => //= /IH->. Qed.

Variables (State : Type) (round : State -> nat -> seq T -> dist R (State * (seq T * T * nat))).

(** Behind the block [b] the target samples on: the average of [f] over the block and what follows it. *)
Definition behind n c (f : seq T -> R) (b : seq T) : R := E (sample (n - size b) (c ++ b)) (fun t => f (b ++ t)).

(** [K] goes on as the target would, whatever the next state is and however many tokens are accepted drafts. *)
Definition goes_on_as_target n c f (K : State * (seq T * T * nat) -> R) :=
  forall s kept last a, K (s, (kept, last, a)) = behind n c f (rcons kept last).

(** One token of the target behind the kept tokens, and the target behind that, is the target behind the kept tokens. *)
Lemma target_behind n c f ks : (size ks < n)%N ->
  \sum_x p (c ++ ks) x * behind n c f (rcons ks x) = behind n c f ks.
Proof.
move=> kn; rewrite /behind -(subnSK kn) E_sampleS; apply: eq_bigr => x _; congr (_ * _).
by rewrite size_rcons -rcons_cat; apply: E_ext => t; rewrite cat_rcons.
Qed.

Lemma behind_nothing n c f : behind n c f [::] = E (sample n c) f.
Proof. by rewrite /behind cats0 subn0. Qed.

(** A round is lossless if, followed by sampling from the target, it is sampling from the target. *)
Definition lossless_round :=
  forall s n c f K, (0 < n)%N -> goes_on_as_target n c f K -> E (round s n c) K = E (sample n c) f.

(** ** Rounds compose.
    If one round is lossless, then the text of all rounds has the law of the target alone: for every horizon [n], every
    prompt [c], every state [s], every set of end-of-sequence tokens, and every number [slack] of tokens that a round
    may emit beyond the horizon before it is cut. *)
Theorem rounds_compose eos slack : lossless_round -> forall fuel n s c, (n <= fuel)%N -> forall f : seq T -> R,
  E (decode N eos round slack fuel n s c) (fun rounds => f (text_of rounds)) = E (target_alone N V eos p n c) f.
Proof.
move=> lossless; elim=> [|fuel IH] [|n] s c // nf f; try by rewrite /= !E_ret.
rewrite target_alone_cut /= E_bind.
rewrite -(sample_take n.+1 slack c (fun t => f (until_end eos t))).
apply: lossless => [|s' kept last a]; first by rewrite addnS.
have [x [b ->]] : exists x b, rcons kept last = x :: b by case: kept => [|x b]; [exists last, [::] | exists x, (rcons b last)].
rewrite /behind /commit.
set b1 := take n.+1 (x :: b); set new := until_end eos b1; set remaining := if _ then _ else _.
rewrite E_bind.
have newS : (0 < size new)%N by rewrite /new /b1 /=.
have rest_fits : (remaining <= fuel)%N.
  rewrite /remaining; case: ifP => // _; apply: leq_trans (leq_sub2l _ newS) _.
  by rewrite subSS subn0 -ltnS.
transitivity (E (decode N eos round slack fuel remaining s' (c ++ new)) (fun rounds => f (new ++ text_of rounds))).
  by apply: E_ext => rounds; rewrite E_ret.
rewrite (IH _ _ _ rest_fits (fun t => f (new ++ t))) target_alone_cut.
have take_cat' t : take n.+1 ((x :: b) ++ t) = b1 ++ take (n.+1 - size (x :: b)) t.
  rewrite take_cat /b1; case: ltnP => h; last by rewrite (@take_oversize _ n.+1 (x :: b)).
  by rewrite (eqP (ltnW h)) take0 cats0.
transitivity (E (sample (slack + n.+1 - size (x :: b)) (c ++ x :: b))
    (fun t => f (new ++ (if has (fun y => y \in eos) new then [::] else until_end eos (take (n.+1 - size (x :: b)) t))))); last first.
  by apply: E_ext => t; rewrite take_cat' until_end_cat.
rewrite /remaining; case: ifP => [end_|/negbT no_end].
  by rewrite E_sample0 proper_sample /= cats0.
have newE : new = b1 := until_end_no_end no_end.
have [short|long] := leqP (size (x :: b)) n.+1; last first.
  rewrite newE (_ : (n.+1 - size b1 = 0)%N) ?E_sample0; last by apply/eqP; rewrite subn_eq0 size_take long.
  rewrite (E_ext _ (L := fun=> f (b1 ++ [::]))) ?proper_sample // => t.
  by rewrite (eqP (ltnW long)) take0.
have b1E : b1 = x :: b by rewrite /b1 take_oversize.
rewrite newE b1E -addnBA //.
by rewrite (sample_take _ _ _ (fun t => f ((x :: b) ++ until_end eos t))).
Qed.

(** The same as an equality of laws: every function of the text has the same average. *)
Corollary decoded_text_law eos slack : lossless_round -> forall n s c,
  same_law (decoded_text N eos round slack n s c) (target_alone N V eos p n c).
Proof.
move=> lossless n s c f; rewrite /decoded_text E_bind -(rounds_compose eos slack lossless s c (leqnn n)).
by apply: E_ext => rounds; rewrite E_ret.
Qed.

(** The same as probabilities of texts. *)
Corollary decoded_text_Pr eos slack : lossless_round -> forall n s c text,
  Pr (decoded_text N eos round slack n s c) text = Pr (target_alone N V eos p n c) text.
Proof. by move=> lossless n s c text; apply: decoded_text_law. Qed.

End Theorems.
