(* Read cases from standard input, write the law of each as one line of JSON: every list of rounds, a round being its
   block and its accepted drafts, with its probability.  A case is, separated by blanks:

   name vocabulary horizon gamma parameter  levels width..  ends token..  contexts (length token.. p.. q..).. *)
open Programs

let numbers =
  { zero = Q.zero; one = Q.one; plus = Q.add; minus = Q.sub; times = Q.mul;
    over = (fun x y -> if Q.sign y = 0 then Q.zero else Q.div x y);  (* as in the theories: x / 0 is 0 *)
    less = (fun x y -> Q.compare x y < 0) }

let word () = Scanf.scanf " %s" (fun s -> s)
let integer () = int_of_string (word ())
let rational () = Q.of_string (word ())
let rec times n read = if n = 0 then [] else let x = read () in x :: times (n - 1) read
let counted read = let n = integer () in times n read

let law name =
  let size = integer () in
  let horizon = integer () in
  let gamma = integer () in
  let parameter = rational () in
  let branching = counted integer in
  let eos = counted integer in
  let p_rows = Hashtbl.create 64 and q_rows = Hashtbl.create 64 in
  let read_context () =
    let text = counted integer in
    Hashtbl.replace p_rows text (Array.of_list (times size rational));
    Hashtbl.replace q_rows text (Array.of_list (times size rational)) in
  let (_ : unit list) = counted read_context in
  let p text x = (Hashtbl.find p_rows text).(x) and q text x = (Hashtbl.find q_rows text).(x) in
  let vocabulary = List.init size (fun x -> x) in
  match name with
  | "speculative-sampling" -> Obj.magic (speculative_sampling numbers vocabulary eos p q gamma horizon [])
  | "sample-and-match" -> Obj.magic (sample_and_match numbers vocabulary eos p q gamma horizon [])
  | "resample-from-target" -> Obj.magic (resample_from_target numbers vocabulary eos p q gamma horizon [])
  | "accept-if-likelier" -> Obj.magic (accept_if_likelier numbers vocabulary eos p q gamma horizon [])
  | "clamped-scalar-residual" -> Obj.magic (clamped_scalar_residual numbers vocabulary eos p q gamma horizon [])
  | "lenience" -> Obj.magic (lenience numbers vocabulary eos p q gamma horizon parameter [])
  | "confidence-dropping" -> Obj.magic (confidence_dropping numbers vocabulary eos p q gamma horizon parameter [])
  | "block-verification" -> Obj.magic (block_verification numbers vocabulary eos p q gamma horizon [])
  | "hierarchical" -> Obj.magic (hierarchical numbers vocabulary eos p q gamma horizon [])
  | "rsd" -> Obj.magic (rsd numbers vocabulary eos p q horizon branching [])
  | "traversal-verification" -> Obj.magic (traversal_verification numbers vocabulary eos p q horizon branching [])
  | _ -> failwith ("there is no program " ^ name)

let print_list print l =
  print_char '[';
  List.iteri (fun i x -> if i > 0 then print_char ','; print x) l;
  print_char ']'

let print_round (block, accepted) =
  print_char '[';
  print_list print_int block;
  Printf.printf ",%d]" accepted

let print_law (outcomes : (Q.t * (int list * int) list) list) =
  let masses = Hashtbl.create 64 in
  List.iter
    (fun (mass, rounds) ->
      let known = try Hashtbl.find masses rounds with Not_found -> Q.zero in
      Hashtbl.replace masses rounds (Q.add known mass))
    outcomes;
  let entries = Hashtbl.fold (fun rounds mass rest -> (rounds, mass) :: rest) masses [] in
  print_list (fun (rounds, mass) ->
    print_char '[';
    print_list print_round rounds;
    Printf.printf ",\"%s\"]" (Q.to_string mass)) entries;
  print_newline ()

let rec answer () = match word () with "" -> () | name -> print_law (law name); answer ()

let () = answer ()
