(** * The exact law of relaxed rules that serving engines ship.

    vLLM's FLy excuses a failed coin by the coins behind it; TensorRT-LLM's relaxed acceptance keeps an argmax of the
    drafter that is near enough to that of the target, and draws nothing. *)
From Lossless Require Import Probability OnePosition Texts Chain Block FixedBlock Released.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).

(** ** FLy in vLLM: a coin of its own at every place of the block [ds] behind the drafts [ks]. *)
Fixpoint toss_all (a : seq T -> T -> R) (ks ds : seq T) : dist R (seq bool) :=
  if ds is d :: ds' then
    bind N (flip N (a ks d)) (fun up => bind N (toss_all a (rcons ks d) ds') (fun later => ret N (up :: later)))
  else ret N [::].

Section Judge.
Variables (State : Type) (p : seq T -> T -> R) (q : State -> seq T -> seq T -> T -> R).

(** May a failed coin be [excused]?  That may depend on the text, the block, the coins and the place. *)
Variable excused : seq T -> seq T -> seq bool -> nat -> bool.

Definition accepts (s : State) (c ks : seq T) : T -> R := accept_probability N (p (c ++ ks)) (q s c ks).

(** The pmf of the token behind the first [i] drafts: p behind the whole block, else norm((p - q)+). *)
Definition token_behind (s : State) (c ds : seq T) (i : nat) : T -> R :=
  let ks := take i ds in if (i < size ds)%N then excess_law N V (p (c ++ ks)) (q s c ks) else p (c ++ ks).

Definition deferring_judge (s : State) (c ds : seq T) : dist R (seq T * T * nat) :=
  bind N (toss_all (accepts s c) [::] ds) (fun up =>
    let i := first_miss (excused c ds) up in
    bind N (draw N V (token_behind s c ds i)) (fun x => ret N (take i ds, x, i))).

End Judge.

(** The probability of a pattern of coins. *)
Fixpoint pattern_mass (a : seq T -> T -> R) (ks ds : seq T) (up : seq bool) : R :=
  match ds, up with
  | d :: ds', u :: up' =>
    times N (if u then a ks d else minus N (one N) (a ks d)) (pattern_mass a (rcons ks d) ds' up')
  | _, _ => one N
  end.

(** ** Relaxed acceptance: [small] and [large] are argmaxes; a draft stays if it is [near], which may read the text
    before the round, the drafts before it, and the draft. *)
Variables (small large : seq T -> T) (near : seq T -> seq T -> T -> bool).

Fixpoint argmaxes g (c ds : seq T) : seq T :=
  if g is g'.+1 then argmaxes g' c (rcons ds (small (c ++ ds))) else ds.

Fixpoint near_drafts (c ks ds : seq T) : nat :=
  if ds is d :: ds' then if near c ks d then near_drafts c (rcons ks d) ds' else size ks else size ks.

Definition relaxed_step State gamma (s : State) n (c : seq T) : State * (seq T * T * nat) :=
  let ds := argmaxes (minn gamma n.-1) c [::] in
  let i := near_drafts c [::] ds in
  (s, (take i ds, large (c ++ take i ds), i)).

(** The drafts that stay, without the others: at most [g] more behind [ks]. *)
Fixpoint while_near g (c ks : seq T) : seq T :=
  if g is g'.+1 then
    if near c ks (small (c ++ ks)) then while_near g' c (rcons ks (small (c ++ ks))) else ks
  else ks.

End Programs.

Section Deferring.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).

(** Coins of a block, as a sum over their patterns. *)
Lemma E_toss_all (a : seq T -> T -> R) : forall ds ks K,
  E (toss_all N a ks ds) K = \sum_(up : (size ds).-tuple bool) pattern_mass N a ks ds up * K up.
Proof.
elim=> [|d ds IH] ks K.
  by rewrite (sum_no_tuple (fun up => pattern_mass N a ks [::] up * K up)) /= E_ret mul1r.
rewrite (sum_tuples _ (fun up => pattern_mass N a ks (d :: ds) up * K up)) big_bool /= E_bind E_flip.
have part (m : R) u : m * E (bind N (toss_all N a (rcons ks d) ds) (fun later => ret N (u :: later))) K
    = \sum_(up : (size ds).-tuple bool) m * pattern_mass N a (rcons ks d) ds up * K (u :: up).
  rewrite E_bind IH mulr_sumr; apply: eq_bigr => up _.
  by rewrite E_ret mulrA.
by rewrite !part.
Qed.

Variables (State : Type) (plan : State -> seq T -> nat) (p : seq T -> T -> R) (q : State -> seq T -> seq T -> T -> R).
Variable next : State -> seq T -> seq T -> seq T * T * nat -> State.
Variable excused : seq T -> seq T -> seq bool -> nat -> bool.

(** ** FLy as vLLM ships it: every block of q and every pattern of its coins, weighted.  The drafts before the first
    coin that fails and is not excused stay. *)
Theorem deferring_law s n c K :
  E (block_round N V q plan (fun _ _ _ => true) (deferring_judge N V p q excused) next s n c) K
  = \sum_(t : (minn (plan s c) n.-1).-tuple T) block_mass N q s c [::] t *
      \sum_(up : (size t).-tuple bool) pattern_mass N (accepts N p q s c) [::] t up *
        (let i := first_miss (excused c t) up in
         \sum_x token_behind N V p q s c t i x * K (next s c t (take i t, x, i), (take i t, x, i))).
Proof.
rewrite /block_round E_bind expected_over_blocks; apply: eq_bigr => t _; congr (_ * _).
rewrite E_bind /deferring_judge E_bind E_toss_all; apply: eq_bigr => up _; congr (_ * _).
by rewrite E_bind E_token; apply: eq_bigr => x _; rewrite !E_ret.
Qed.

End Deferring.

Section Relaxed.
Variables (R : realFieldType) (T : eqType).
Local Notation N := (field_numbers R).
Variables (small large : seq T -> T) (near : seq T -> seq T -> T -> bool).
Local Notation near_drafts := (near_drafts near).
Local Notation while_near := (while_near small near).

Lemma argmaxes_cat g : forall c ds, exists later, argmaxes small g c ds = ds ++ later /\ size later = g.
Proof.
elim: g => [|g IH] c ds /=; first by exists [::]; rewrite cats0.
by have [later [-> sl]] := IH c (rcons ds (small (c ++ ds))); exists (small (c ++ ds) :: later); rewrite cat_rcons /= sl.
Qed.

(** What is drafted behind the first draft that does not stay changes nothing. *)
Lemma near_drafts_of_argmaxes g : forall c ks, let ds := argmaxes small g c ks in
  take (near_drafts c ks (drop (size ks) ds)) ds = while_near g c ks
  /\ near_drafts c ks (drop (size ks) ds) = size (while_near g c ks).
Proof.
elim: g => [|g IH] c ks /=; first by rewrite drop_size take_size.
have [later [dsE _]] := argmaxes_cat g c (rcons ks (small (c ++ ks))).
have := IH c (rcons ks (small (c ++ ks))); rewrite dsE /= size_rcons.
rewrite (_ : drop (size ks) _ = small (c ++ ks) :: later); last by rewrite cat_rcons drop_size_cat.
rewrite (_ : drop (size ks).+1 _ = later); last by rewrite drop_size_cat ?size_rcons.
by rewrite /=; case: ifP => // _ _; rewrite cat_rcons take_size_cat.
Qed.

Lemma text_of_steps_ext State eos (step step' : State -> nat -> seq T -> State * (seq T * T * nat)) slack :
  (forall s n c, step s n c = step' s n c) ->
  forall fuel n s c, text_of_steps eos step slack fuel n s c = text_of_steps eos step' slack fuel n s c.
Proof.
move=> same; elim=> [|fuel IH] [|n] s c //=; rewrite same.
by case: (step' _ _ _) => s' [[kept last'] a]; rewrite IH.
Qed.

(** ** Relaxed acceptance: the point mass on the text whose rounds are drafts while they are near, and an argmax of the
    target. *)
Theorem relaxed_law State eos gamma n (s : State) c (f : seq T -> R) :
  let step (s : State) n c := let ks := while_near (minn gamma n.-1) c [::] in (s, (ks, large (c ++ ks), size ks)) in
  E (decoded_text N eos (fun s n c => ret N (relaxed_step small large near gamma s n c)) 0 n s c) f
  = f (text_of_steps eos step 0 n n s c).
Proof.
move=> step; rewrite -(text_of_steps_ext eos (step := relaxed_step small large near gamma)); last first.
  move=> s' m c'; have [] := near_drafts_of_argmaxes (minn gamma m.-1) c' [::].
  by rewrite drop0 /relaxed_step /step => -> ->.
rewrite -(deterministic_rounds_law eos _ 0 n n s c f) /decoded_text E_bind.
by apply: E_ext => rounds; rewrite E_ret.
Qed.

End Relaxed.
