(** * What becomes of a drafted block: sums over all blocks, and closed forms for a block that is given.

    [expected_over_blocks] replaces the draws of a drafter by a sum over every block.  [judged_block_law] is what a rule
    that keeps or replaces makes of a given block, [longest_law] what coins make of it that are tossed from the whole
    block down.  No draw is left in these sums but that of the last token. *)
From Lossless Require Import Probability OnePosition Texts Chain Block.

Section Programs.
Variables (R : Type) (N : numbers R) (T : eqType) (V : seq T).

(** The longest prefix of a block whose coin comes up heads, and a token behind it.  Both the coin [heads kept later] and
    the law [owed kept later] may read the whole block; [None] if no coin comes up. *)
Fixpoint longest (heads : seq T -> seq T -> R) (owed : seq T -> seq T -> T -> R) (ks ds : seq T) :
    dist R (option (seq T * T * nat)) :=
  let toss := bind N (flip N (heads ks ds)) (fun up =>
    if up then bind N (draw N V (owed ks ds)) (fun x => ret N (Some (ks, x, size ks))) else ret N None) in
  if ds is d :: ds' then
    bind N (longest heads owed (rcons ks d) ds') (fun o => if o is Some result then ret N (Some result) else toss)
  else toss.

(** The probability that a drafter drafts [t] behind the drafts [ds]. *)
Fixpoint block_mass State (q : State -> seq T -> seq T -> T -> R) (s : State) (c ds t : seq T) : R :=
  if t is d :: t' then times N (q s c ds d) (block_mass q s c (rcons ds d) t') else one N.

End Programs.

Section Theorems.
Variables (R : realFieldType) (T : finType).
Local Notation N := (field_numbers R).
Local Notation V := (vocabulary T).

Lemma sum_tuples n (F : seq T -> R) : \sum_(t : n.+1.-tuple T) F t = \sum_d \sum_(t : n.-tuple T) F (d :: t).
Proof.
rewrite pair_big /= (reindex (fun dt : T * n.-tuple T => [tuple of dt.1 :: dt.2])) //=.
exists (fun t => (thead t, [tuple of behead t])) => [[d t] _ | t _].
  by congr pair; apply: val_inj.
by rewrite [RHS]tuple_eta.
Qed.

Lemma sum_no_tuple (F : seq T -> R) : \sum_(t : 0.-tuple T) F t = F [::].
Proof. by rewrite (big_pred1 [tuple]) // => t; apply/esym/eqP; exact: tuple0. Qed.

Section Drafts.
Variables (State : Type) (q : State -> seq T -> seq T -> T -> R).

(** ** A block of [g] drafts, as a sum over all blocks. *)
Theorem expected_over_blocks g s c : forall ds K,
  E (propose N V (fun _ _ _ => true) q g s c ds) K = \sum_(t : g.-tuple T) block_mass N q s c ds t * K t.
Proof.
elim: g => [|g IH] ds K; first by rewrite (sum_no_tuple (fun t => _ t * K t)) /= E_ret mul1r.
rewrite (sum_tuples _ (fun t => block_mass N q s c ds t * K t)) E_proposeS //; apply: eq_bigr => d _.
by rewrite IH mulr_sumr; apply: eq_bigr => t _; rewrite mulrA.
Qed.
End Drafts.

(** ** A given block under a rule that keeps or replaces.
    The draft at place i ends the round with the probability that those before it stay and it does not. *)
Theorem judged_block_law State (a : seq T -> T -> R) (r : seq T -> T -> R) (bonus : seq T -> T -> R) (s : State) c K : forall ds ks,
  E (judge N (fun _ _ ks d => accept_or_replace N V (a ks d) (r ks)) (fun t => draw N V (bonus t)) s c ks ds) K
  = \sum_(i < (size ds).+1) block_mass N (fun _ _ => a) s c ks (take i ds)
      * (if drop i ds is d :: _ then (1 - a (ks ++ take i ds) d) * \sum_x r (ks ++ take i ds) x * K (ks ++ take i ds, x, (size ks + i)%N)
         else \sum_x bonus (c ++ ks ++ take i ds) x * K (ks ++ take i ds, x, (size ks + i)%N)).
Proof.
elim=> [|d ds IH] ks.
  rewrite big_ord_recl big_ord0 /= !cats0 addr0 mul1r addn0 E_bind E_token; apply: eq_bigr => x _.
  by rewrite E_ret.
rewrite big_ord_recl /= cats0 mul1r addn0 E_bind E_accept_or_replace IH addrC; congr (_ + _).
  by congr (_ * _); apply: eq_bigr => x _; rewrite E_ret.
rewrite mulr_sumr; apply: eq_bigr => i _; rewrite /= cat_rcons size_rcons addSnnS mulrA.
by [].
Qed.

(** The probability that no coin comes up, and that no coin of a longer prefix does. *)
Fixpoint all_tails (heads : seq T -> seq T -> R) (ks ds : seq T) : R :=
  (1 - heads ks ds) * (if ds is d :: ds' then all_tails heads (rcons ks d) ds' else 1).

Definition tails_behind (heads : seq T -> seq T -> R) (ks ds : seq T) : R :=
  if ds is d :: ds' then all_tails heads (rcons ks d) ds' else 1.

(** ** Coins that are tossed from the whole block down: the longest prefix whose coin comes up heads.
    The prefix of i drafts comes out with its own coin, times the tails of all longer ones. *)
Theorem longest_law (heads : seq T -> seq T -> R) (owed : seq T -> seq T -> T -> R) L fail : forall ds ks,
  E (longest N V heads owed ks ds) (or_else L fail)
  = \sum_(i < (size ds).+1) tails_behind heads (ks ++ take i ds) (drop i ds) * heads (ks ++ take i ds) (drop i ds)
      * (\sum_x owed (ks ++ take i ds) (drop i ds) x * L (ks ++ take i ds, x, (size ks + i)%N))
    + all_tails heads ks ds * fail.
Proof.
have toss ks ds F : E (bind N (flip N (heads ks ds)) (fun up =>
    if up then bind N (draw N V (owed ks ds)) (fun x => ret N (Some (ks, x, size ks))) else ret N None)) (or_else L F)
  = heads ks ds * (\sum_x owed ks ds x * L (ks, x, size ks)) + (1 - heads ks ds) * F.
  rewrite E_bind E_flip E_ret E_bind E_token; congr (_ * _ + _).
  by apply: eq_bigr => x _; rewrite E_ret.
move=> ds; elim: ds fail => [|d ds IH] fail ks.
  by rewrite toss big_ord_recl big_ord0 /= cats0 addr0 mulr1 mul1r addn0.
pose rest := heads ks (d :: ds) * (\sum_x owed ks (d :: ds) x * L (ks, x, size ks)) + (1 - heads ks (d :: ds)) * fail.
transitivity (E (longest N V heads owed (rcons ks d) ds) (or_else L rest)).
  by rewrite /= E_bind; apply: E_ext => -[result|]; rewrite ?E_ret ?toss.
rewrite IH [in RHS]big_ord_recl /= cats0 addn0 /rest mulrDr addrA [all_tails _ _ _ * ((1 - _) * fail)]mulrA.
rewrite [(1 - _) * all_tails _ _ _]mulrC; congr (_ + _); rewrite [LHS]addrC mulrA; congr (_ + _).
by apply: eq_bigr => i _; rewrite cat_rcons size_rcons addSnnS.
Qed.

End Theorems.
