(** The programs of the theories as OCaml functions over any numbers.  [decoder] in driver.ml runs them over rationals. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Lossless Require Import Probability OnePosition Texts Chain OwnDraws Block Tree Selection Traversal Shortcuts.
Require Import Extraction ExtrOcamlBasic ExtrOcamlNatInt.
Set Implicit Arguments. Unset Strict Implicit.

Section Decoders.
Variables (R : Type) (N : numbers R) (V eos : seq nat) (p q : seq nat -> nat -> R) (gamma horizon : nat).

Definition drafts (_ : unit) (c ds : seq nat) := q (c ++ ds).
Definition keep_state (A : Type) (s : unit) (_ : seq nat) (_ : A) (_ : seq nat * nat * nat) := s.
Definition run (round : unit -> nat -> seq nat -> dist R (unit * (seq nat * nat * nat))) (c : seq nat) :=
  decode N eos round 0 horizon horizon tt c.

Definition chain_with (rule : (nat -> R) -> (nat -> R) -> nat -> dist R (option nat)) (c : seq nat) :=
  run (chain_round N V (fun _ _ => gamma) (fun _ _ _ => true) drafts
    (fun _ c ks => rule (p (c ++ ks)) (q (c ++ ks))) (fun c => draw N V (p c)) (@keep_state (seq nat))) c.

Definition speculative_sampling := chain_with (speculative_rule N V).
Definition sample_and_match := chain_with (fun p _ => match_rule N V p).
Definition resample_from_target := chain_with (resample_rule N V).
Definition accept_if_likelier := chain_with (likelier_rule N V).
Definition clamped_scalar_residual := chain_with (scalar_rule N V).
Definition lenience (l : R) := chain_with (lenient_rule N V l).
Definition confidence_dropping (threshold : R) (c : seq nat) :=
  run (chain_round N V (fun _ _ => gamma)
    (fun _ c ds => if ds is x :: ds' then ~~ less N (q (c ++ belast x ds') (last x ds')) threshold else true) drafts
    (fun _ c ks => drop_rule N V (fun x => ~~ less N (q (c ++ ks) x) threshold) (p (c ++ ks)) (q (c ++ ks)))
    (fun c => draw N V (p c)) (@keep_state (seq nat))) c.

Definition blocks_with (judge : unit -> seq nat -> seq nat -> dist R (seq nat * nat * nat)) (c : seq nat) :=
  run (block_round N V drafts (fun _ _ => gamma) (fun _ _ _ => true) judge (@keep_state (seq nat))) c.
Definition block_verification := blocks_with (block_judge N V p drafts).
Definition hierarchical := blocks_with (hierarchical_judge N V p drafts).

(** Siblings without replacement: a plan is the number of children of each level from here down. *)
Definition without (u : nat -> R) (earlier : seq nat) : option (nat -> R) :=
  let kept x := if x \in earlier then zero N else u x in
  let mass := total N V kept in
  if less N (zero N) mass then Some (if earlier is [::] then u else fun x => over N (kept x) mass) else None.
Definition regular_sibling (plan : seq nat) (c earlier : seq nat) : option (nat -> R) :=
  if plan is width :: _ then if (size earlier < width)%N then without (q c) earlier else None else None.
Definition regular_below (plan : seq nat) (_ _ : seq nat) (_ : nat) : seq nat := behead plan.
Definition rsd (branching : seq nat) :=
  run (tree_round N V regular_sibling regular_below p (try_in_turn N V) (fun _ _ => branching)
    (foldr maxn 0%N branching) (size branching) (@keep_state (seq (node R nat_eqType)))).
Definition traversal_verification (branching : seq nat) :=
  run (traversal_round N V p regular_sibling regular_below (fun (_ : unit) _ => branching)
    (foldr maxn 0%N branching) (size branching) (@keep_state (seq (node R nat_eqType)))).

End Decoders.

Extraction "programs.ml" speculative_sampling sample_and_match resample_from_target accept_if_likelier
  clamped_scalar_residual lenience confidence_dropping block_verification hierarchical rsd traversal_verification.
