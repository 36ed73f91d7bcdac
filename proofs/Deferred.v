(** * Drafts that are drawn in the round before: speculative Jacobi decoding.

    A sweep leaves drafts for the next one.  Nothing that is decided between their draw and their judgement looks at
    them, so they may as well be drawn when they are judged ([deferred_decode]).  Then a sweep is a chain whose drafter
    reads the texts that its state holds, and the main theorem applies. *)
From Lossless Require Import Probability OnePosition Texts Chain.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).
Variables (p : seq T -> T -> R) (even : T -> R) (window : nat).

(** The token [x] as a point mass. *)
Definition certain (x : T) : T -> R := fun y => if y == x then one N else zero N.

(** A held draft is judged by the row that it was drawn from, an even draw as a point mass on itself. *)
Definition jacobi_rule (held : seq (seq T)) (c ks : seq T) (d : T) : dist R (option T) :=
  speculative_rule N V (p (c ++ ks)) (if (size ks < size held)%N then p (nth [::] held (size ks)) else certain d) d.

(** Behind the token that ends the round every place is drawn anew, each from the row behind the old drafts before it. *)
Definition swept_texts (c ds : seq T) (result : seq T * T * nat) : seq (seq T) :=
  [seq c ++ take i ds | i <- iota result.2.+1 (size ds - result.2.+1)].

Definition sweep (texts : seq (seq T)) : dist R (seq (T * seq T)) :=
  bind N (draw_all N V (map p texts)) (fun tokens => ret N (zip tokens texts)).

(** A round: the state holds drafts, each with the text that it was drawn behind. *)
Definition jacobi_round (s : seq (T * seq T)) n (c : seq T) : dist R (seq (T * seq T) * (seq T * T * nat)) :=
  let m := minn window n.-1 in
  bind N (draw_all N V (nseq (m - size s) even)) (fun fresh =>
  let ds := map fst (take m s) ++ fresh in
  bind N (judge N (fun _ => jacobi_rule (map snd s)) (fun t => draw N V (p t)) tt c [::] ds) (fun result =>
  bind N (sweep (swept_texts c ds result)) (fun s' => ret N (s', result)))).

End Programs.

Section Deferred.
Variables (R : realFieldType) (T : eqType).
Local Notation N := (field_numbers R).
Variables (Lazy Eager : Type) (fill : Lazy -> dist R Eager).
Variables (eager : Eager -> nat -> seq T -> dist R (Eager * (seq T * T * nat))) (lazy_ : Lazy -> nat -> seq T -> dist R (Lazy * (seq T * T * nat))).
Hypothesis Hfill : forall s, proper (fill s).

(** ** What is drawn early may be drawn late.
    If a round that begins with [fill] is a round that ends with it, then so are all rounds together. *)
Theorem deferred_decode :
  (forall s n c K, E (fill s) (fun e => E (eager e n c) K) = E (lazy_ s n c) (fun sr => E (fill sr.1) (fun e => K (e, sr.2)))) ->
  forall eos slack fuel n s c K,
  E (fill s) (fun e => E (decode N eos eager slack fuel n e c) K) = E (decode N eos lazy_ slack fuel n s c) K.
Proof.
move=> swap eos slack; elim=> [|fuel IH] [|n] s c K; try by rewrite /= E_ret Hfill.
rewrite /= E_bind (E_ext _ (fun e => E_bind _ _ _)) swap; apply: E_ext => -[s' [[kept last'] a]] /=.
set new := until_end _ _; set remaining := if _ then _ else _.
by rewrite E_bind -IH; apply: E_ext => e; rewrite E_bind.
Qed.
End Deferred.

Section Theorems.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).
Variables (p : seq T -> T -> R) (even : T -> R) (window : nat).
Hypotheses (Hp : forall c, pmf (p c)) (Heven : pmf even).

(** The same drafts, drawn when they are judged. *)
Definition held_pmf (texts : seq (seq T)) (i : nat) : T -> R :=
  if (i < size texts)%N then p (nth [::] texts i) else even.
Definition late_round := chain_round N V (fun (_ : seq (seq T)) _ => window) (fun _ _ _ => true)
  (fun texts _ ds => held_pmf texts (size ds)) (jacobi_rule N V p) (fun t => draw N V (p t)) (fun _ c ds result => swept_texts c ds result).

Lemma certain_is_point_mass (x : T) : certain N x =1 point_mass R x.
Proof. by move=> y; rewrite /certain /point_mass; case: eqP. Qed.

(** A draft that is judged as a point mass on itself: exact for every law of the draft. *)
Lemma certain_rule_exact (r u : T -> R) : pmf r -> pmf u -> exact_rule r u (fun d => speculative_rule N V r (certain N d) d).
Proof.
move=> Hr Hu F; rewrite /emitted -[RHS]mul1r -Hu.2 mulr_suml; apply: eq_bigr => d _; congr (_ * _).
have Hd : pmf (certain N d).
  have [p0 p1] := pmf_point_mass R d; split=> [x|]; rewrite ?certain_is_point_mass //.
  by rewrite -p1; apply: eq_bigr => x _; rewrite certain_is_point_mass.
rewrite -(speculative_rule_exact Hr Hd F) /emitted (eq_bigr _ (fun x _ => congr1 (fun w => w * _) (certain_is_point_mass d x))).
by rewrite sum_point_mass.
Qed.

Lemma late_round_lossless : lossless_round p late_round.
Proof.
apply: chain_round_lossless => // [texts _ ds|texts c ks].
  by rewrite /held_pmf; case: ifP.
by rewrite /jacobi_rule /held_pmf; case: ifP => _; [apply: speculative_rule_exact | apply: certain_rule_exact].
Qed.

(** A drafter that knows how many drafts there are, and not which. *)
Lemma propose_by_place (r : nat -> T -> R) State (q : State -> seq T -> seq T -> T -> R) g (s : State) c :
  (forall ds, q s c ds = r (size ds)) -> forall ds K,
  E (propose N V (fun _ _ _ => true) q g s c ds) K = E (draw_all N V (map r (iota (size ds) g))) K.
Proof.
move=> qr; elim: g => [|g IH] ds K; first by rewrite !E_ret.
by rewrite E_proposeS // E_draw_all_cons qr; apply: eq_bigr => d _; rewrite IH size_rcons.
Qed.

Lemma held_pmfs texts m : map (held_pmf texts) (iota 0 m) = take m (map p texts) ++ nseq (m - size texts) even.
Proof.
elim: texts m => [|t texts IH] [|m] //=.
  by congr (_ :: _); elim: m 1%N => //= m IH i; congr (_ :: _); exact: IH.
by rewrite subSS -IH; congr (_ :: _); rewrite (iotaDl 1 0) -map_comp; apply: eq_map.
Qed.

Lemma all_pmfs_rows texts : all_pmfs (map p texts).
Proof. by elim: texts => //= t texts IH; split. Qed.

Lemma sweep_is_late texts n c K :
  E (sweep N V p texts) (fun e => E (jacobi_round N V p even window e n c) K)
  = E (late_round texts n c) (fun sr => E (sweep N V p sr.1) (fun e => K (e, sr.2))).
Proof.
pose after ds := E (judge N (fun _ => jacobi_rule N V p texts) (fun t => draw N V (p t)) tt c [::] ds) (fun result =>
  E (sweep N V p (swept_texts c ds result)) (fun e => K (e, result))).
pose m := minn window n.-1; pose rows := map p texts.
have judges : forall ds ks L, E (judge N (jacobi_rule N V p) (fun t => draw N V (p t)) texts c ks ds) L
    = E (judge N (fun _ => jacobi_rule N V p texts) (fun t => draw N V (p t)) tt c ks ds) L.
  by elim=> [|d ds IH] ks L //; rewrite [LHS]E_bind [RHS]E_bind; apply: E_ext => -[x|] //; apply: IH.
transitivity (E (draw_all N V (take m rows ++ nseq (m - size texts) even)) after); last first.
  rewrite /late_round /chain_round [RHS]E_bind (propose_by_place (r := held_pmf texts)) // held_pmfs; apply: E_ext => ds.
  by rewrite E_bind judges; apply: E_ext => result; rewrite E_ret.
rewrite E_draw_all_cat /sweep E_bind -/rows -{1}(cat_take_drop m rows) E_draw_all_cat.
have sizes : size (take m rows) = minn m (size texts) by rewrite size_take size_map.
apply: draw_all_size => held sh.
transitivity (E (draw_all N V (drop m rows)) (fun rest => E (draw_all N V (nseq (m - size texts) even)) (fun fresh => after (held ++ fresh)))); last first.
  by rewrite proper_draw_all // /rows -map_drop; exact: all_pmfs_rows.
apply: draw_all_size => rest sr; rewrite E_ret /jacobi_round -/m.
have st : size (held ++ rest) = size texts.
  by rewrite size_cat sh sr -size_cat cat_take_drop size_map.
rewrite size_zip st minnn E_bind; apply: E_ext => fresh.
have texts_back : map snd (zip (held ++ rest) texts) = texts by rewrite -/unzip2 unzip2_zip // st.
have held_back : map fst (take m (zip (held ++ rest) texts)) = held.
  rewrite map_take -/unzip1 unzip1_zip ?st // take_cat sh sizes ltnNge geq_minl /=.
  have [small|/ltnW large] := leqP m (size texts); first by rewrite subnn take0 cats0.
  have -> : rest = [::] by apply: size0nil; rewrite sr size_drop size_map; apply/eqP.
  by rewrite cats0.
rewrite texts_back held_back E_bind; apply: E_ext => result.
by rewrite E_bind; apply: E_ext => s'; rewrite E_ret.
Qed.

Lemma proper_sweep texts : proper (sweep N V p texts).
Proof.
by apply: proper_bind (proper_draw_all (all_pmfs_rows texts)) _ => tokens; exact: proper_ret.
Qed.

(** ** Speculative Jacobi decoding is lossless, for every window and every law of the even draws. *)
Theorem jacobi_lossless eos slack n c :
  same_law (decoded_text N eos (jacobi_round N V p even window) slack n [::] c) (target_alone N V eos p n c).
Proof.
move=> f; rewrite -(decoded_text_law Hp eos slack late_round_lossless n [::] c f) /decoded_text !E_bind.
have -> L : E (decode N eos (jacobi_round N V p even window) slack n n [::] c) L
    = E (sweep N V p [::]) (fun e => E (decode N eos (jacobi_round N V p even window) slack n n e c) L).
  by rewrite /sweep E_bind E_ret E_ret.
by apply: deferred_decode; [exact: proper_sweep | exact: sweep_is_late].
Qed.

End Theorems.
