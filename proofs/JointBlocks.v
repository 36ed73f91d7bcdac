(** * SpecTr-GBV as released: K blocks of one drafter, tried prefix by prefix with joint chances.

    With S and B the probabilities of a prefix under q and p, and r = min(1, S/B), a prefix that is tried stays with a
    chance of (1 - r)^K and the shares of its continuations.  The rule is not lossless; its law is a sum over all sets of
    blocks and over the coins of their prefixes. *)
From Lossless Require Import Probability OnePosition Texts Chain Block FixedBlock.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).
Variables (p u : seq T -> T -> R) (whole count : nat).   (* rows behind the text, length and number of the blocks *)

Fixpoint power (x : R) k : R := if k is k'.+1 then times N x (power x k') else one N.
Definition mass_along (r : seq T -> T -> R) (ks : seq T) : R := block_mass N (fun (_ : unit) _ => r) tt [::] [::] ks.
Definition share_of (proposed mass : R) : R := if less N proposed mass then over N proposed mass else one N.
Definition share_behind (ks : seq T) (v : T) : R :=
  share_of (times N (mass_along u ks) (u ks v)) (times N (mass_along p ks) (p ks v)).

(** part / whole as a probability: 0 where one of them is not positive, 1 for more. *)
Definition chance (part all : R) : R :=
  if less N (zero N) part && less N (zero N) all then minimum N (over N part all) (one N) else zero N.

Definition joint_stays (ks : seq T) : R :=
  let S := mass_along u ks in let B := mass_along p ks in
  let missing := power (minus N (one N) (share_of S B)) count in
  let drafted := minus N (one N) (power (minus N (one N) S) count) in
  if size ks == whole then chance (times N B (minus N (one N) missing)) drafted else
  let onward v := times N B (p ks v) in
  let gap v := power (minus N (one N) (share_behind ks v)) count in
  chance (minus N (total N V (fun v => times N (onward v) (gap v))) (times N B missing))
    (minus N drafted (total N V (fun v => times N (onward v) (minus N (one N) (gap v))))).

(** The token behind what stayed: from norm(B p(v) (1 - r(v)^K)), and from p behind a whole block. *)
Definition joint_behind (ks : seq T) : T -> R :=
  let owed v := times N (p ks v) (minus N (one N) (power (share_behind ks v) count)) in
  let mass := total N V owed in
  if (size ks == whole) || ~~ less N (zero N) mass then p ks else fun v => over N (owed v) mass.

(** Try the prefixes [parts] of one block; those that were turned down before are passed over. *)
Fixpoint try_parts (parts : seq (seq T)) (kept : seq T) (turned : seq (seq T)) : dist R (seq T * seq (seq T)) :=
  if parts is part :: parts' then
    if part \in turned then try_parts parts' kept turned else
    bind N (flip N (joint_stays part)) (fun up =>
      if up then try_parts parts' part turned
      else try_parts parts' kept (if size part == whole then turned else part :: turned))
  else ret N (kept, turned).

Definition longer_parts (kept block : seq T) : seq (seq T) :=
  [seq take i block | i <- iota (size kept).+1 (size block - size kept)].

Fixpoint try_blocks (blocks : seq (seq T)) (kept : seq T) (turned : seq (seq T)) : dist R (seq T) :=
  if size kept == whole then ret N kept else
  if blocks is block :: blocks' then
    bind N (try_parts (longer_parts kept block) kept turned) (fun kt => try_blocks blocks' kt.1 kt.2)
  else ret N kept.

Fixpoint several A k (d : dist R A) : dist R (seq A) :=
  if k is k'.+1 then bind N d (fun a => bind N (several k' d) (fun l => ret N (a :: l))) else ret N [::].

Definition joint_judge (blocks : seq (seq T)) : dist R (seq T * T * nat) :=
  bind N (try_blocks blocks [::] [::]) (fun kept =>
  bind N (draw N V (joint_behind kept)) (fun x => ret N (kept, x, size kept))).

End Programs.

Section Round.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T) (State : Type).
Variables (p q : seq T -> T -> R) (count gamma : nat).
Definition joint_round (s : State) n (c : seq T) : dist R (State * (seq T * T * nat)) :=
  let g := minn gamma n.-1 in
  bind N (several N count (propose N V (fun (_ : unit) _ _ => true) (fun _ c ds => q (c ++ ds)) g tt c [::])) (fun blocks =>
  bind N (joint_judge N V (fun ks => p (c ++ ks)) (fun ks => q (c ++ ks)) g count blocks) (fun result => ret N (s, result))).
End Round.

Section Law.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).

Section Coins.
Variables (p u : seq T -> T -> R) (whole count : nat).
Local Notation stays := (joint_stays N V p u whole count).

(** Sums in the place of coins: each prefix that is tried stays or is turned down. *)
Fixpoint over_parts (parts : seq (seq T)) (kept : seq T) (turned : seq (seq T)) (K : seq T -> seq (seq T) -> R) : R :=
  if parts is part :: parts' then
    if part \in turned then over_parts parts' kept turned K
    else stays part * over_parts parts' part turned K
       + (1 - stays part) * over_parts parts' kept (if size part == whole then turned else part :: turned) K
  else K kept turned.

Fixpoint over_tries (blocks : seq (seq T)) (kept : seq T) (turned : seq (seq T)) (K : seq T -> R) : R :=
  if size kept == whole then K kept else
  if blocks is block :: blocks' then
    over_parts (longer_parts kept block) kept turned (fun kept' turned' => over_tries blocks' kept' turned' K)
  else K kept.

Lemma E_try_parts K : forall parts kept turned,
  E (try_parts N V p u whole count parts kept turned) (fun kt => K kt.1 kt.2) = over_parts parts kept turned K.
Proof.
elim=> [|part parts IH] kept turned /=; first by rewrite E_ret.
by case: ifP => _; rewrite ?IH // E_bind E_flip !IH.
Qed.

Lemma E_try_blocks K : forall blocks kept turned,
  E (try_blocks N V p u whole count blocks kept turned) K = over_tries blocks kept turned K.
Proof.
elim=> [|block blocks IH] kept turned /=; case: ifP => _; rewrite ?E_ret // E_bind.
rewrite -(E_try_parts (fun kept' turned' => over_tries blocks kept' turned' K)).
by apply: E_ext => kt; rewrite IH.
Qed.
End Coins.

Lemma E_several g (q : seq T -> T -> R) c : forall k K,
  E (several N k (propose N V (fun (_ : unit) _ _ => true) (fun _ c ds => q (c ++ ds)) g tt c [::])) K
  = \sum_(blocks : k.-tuple [finType of g.-tuple T])
      \prod_(b <- blocks) block_mass N (fun (_ : unit) c ds => q (c ++ ds)) tt c [::] b * K (map val blocks).
Proof.
elim=> [|k IH] K.
  rewrite (sum_no_tuple (fun blocks : seq [finType of g.-tuple T] =>
    \prod_(b <- blocks) block_mass N (fun (_ : unit) c ds => q (c ++ ds)) tt c [::] b * K (map val blocks))).
  by rewrite /= E_ret big_nil mul1r.
rewrite (sum_tuples _ (fun blocks : seq [finType of g.-tuple T] =>
    \prod_(b <- blocks) block_mass N (fun (_ : unit) c ds => q (c ++ ds)) tt c [::] b * K (map val blocks))).
rewrite [several _ _ _]/= E_bind expected_over_blocks; apply: eq_bigr => b _.
rewrite E_bind IH mulr_sumr; apply: eq_bigr => blocks _.
by rewrite big_cons E_ret mulrA.
Qed.

(** ** The law of a round.
    Every set of K blocks of q, weighted; of it what the coins leave; and a token behind that. *)
Theorem joint_blocks_law State (p q : seq T -> T -> R) count gamma (s : State) n c K :
  let g := minn gamma n.-1 in
  let p' ks := p (c ++ ks) in let u ks := q (c ++ ks) in
  E (joint_round N V p q count gamma s n c) K
  = \sum_(blocks : count.-tuple [finType of g.-tuple T])
      \prod_(b <- blocks) block_mass N (fun (_ : unit) c ds => q (c ++ ds)) tt c [::] b *
      over_tries p' u g count (map val blocks) [::] [::]
        (fun kept => \sum_x joint_behind N V p' u g count kept x * K (s, (kept, x, size kept))).
Proof.
move=> g p' u; rewrite /joint_round E_bind E_several; apply: eq_bigr => blocks _; congr (_ * _).
rewrite E_bind /joint_judge E_bind -E_try_blocks; apply: E_ext => kept.
by rewrite E_bind E_token; apply: eq_bigr => x _; rewrite !E_ret.
Qed.
End Law.
