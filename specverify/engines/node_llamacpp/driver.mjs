// Answers lines of JSON with texts of node-llama-cpp: the command protocol of `specverify sample command:...`.
//
//     NODE_LLAMA_CPP=FOLDER node driver.mjs TARGET.gguf [--draft DRAFT.gguf | --lookup] [--sequences 4]
//
// FOLDER has node_modules. Questions have `prompt` (token ids), `max_tokens`, `seed`, `n`, `temperature` and `options`:
// those of `sequence.evaluate` by their names. `repeatPenalty` counts the prompt and the new tokens, `tokenBias` is a list
// of [token, "never" or number], `grammar` is in GBNF, `draft` has the options of the predictor. With `--sequences 4` four
// texts are decoded at once.

import {createInterface} from "node:readline";
import {join} from "node:path";
import {pathToFileURL} from "node:url";

const folder = process.env.NODE_LLAMA_CPP ?? ".";
const library = join(folder, "node_modules", "node-llama-cpp", "dist", "index.js");
const {
    getLlama, DraftSequenceTokenPredictor, InputLookupTokenPredictor, LlamaGrammar, LlamaGrammarEvaluationState,
    LlamaLogLevel, TokenBias
} = await import(pathToFileURL(library).href);

const [target, ...words] = process.argv.slice(2);
const named = (name) => (words.includes(name) ? words[words.indexOf(name) + 1] : undefined);
const lookup = words.includes("--lookup");
const count = Number(named("--sequences") ?? 1);
const settings = {gpu: false, build: "never", skipDownload: true, maxThreads: 1, logLevel: LlamaLogLevel.error};
const llama = await getLlama(settings);

/** Return a context of a model, for `count` texts of at most 256 tokens at once, with a cache in float32. */
async function contextOf(model) {
    return await model.createContext({
        sequences: count, contextSize: 256, flashAttention: false, threads: 1,
        experimentalKvCacheKeyType: "F32",
        experimentalKvCacheValueType: "F32"
    });
}

const model = await llama.loadModel({modelPath: target, gpuLayers: 0});
const context = await contextOf(model);
const draftModel = named("--draft") && (await llama.loadModel({modelPath: named("--draft"), gpuLayers: 0}));
const draftContext = draftModel && (await contextOf(draftModel));
const sequences = new Map();

/** Return the sequences whose predictor has these options; those of other options are given back first. */
async function sequencesWith(options = {}) {
    const key = JSON.stringify(options);
    if (!sequences.has(key)) {
        for (const each of [...sequences.values()].flat()) {
            each.sequence.dispose();
            each.draft?.dispose();
        }
        sequences.clear();
        const made = [];
        for (let i = 0; i < count; i++) {
            const draft = draftContext?.getSequence();
            const predictor = draft
                ? new DraftSequenceTokenPredictor(draft, {minTokens: 3, maxTokens: 3, minConfidence: 0, ...options})
                : lookup ? new InputLookupTokenPredictor(options) : undefined;
            made.push({sequence: context.getSequence({tokenPredictor: predictor}), draft, predictor});
        }
        sequences.set(key, made);
    }
    return sequences.get(key);
}

/** Return the seed of a row: a mix of the seed of the call and its number. */
function seedOf(seed, row) {
    let mixed = (seed ^ Math.imul(row + 1, 0x9e3779b1)) >>> 0;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b) >>> 0;
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35) >>> 0;
    return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** Return the options of `evaluate` for one text; `tokens` is the text so far, the prompt included. */
function evaluation(question, tokens, seed) {
    const {repeatPenalty, tokenBias, grammar, ...options} = question.options ?? {};
    const off = {temperature: question.temperature ?? 1, topK: 0, topP: 1, minP: 0, yieldEogToken: true};
    const result = {...off, ...options, seed};
    if (repeatPenalty !== undefined)
        result.repeatPenalty = {...repeatPenalty, punishTokens: () => tokens};
    if (tokenBias !== undefined) {
        result.tokenBias = new TokenBias(model.tokenizer);
        for (const [token, bias] of tokenBias)
            result.tokenBias.set(token, bias === "never" ? bias : {logit: bias});
    }
    if (grammar !== undefined)
        result.grammarEvaluationState = new LlamaGrammarEvaluationState({model, grammar: new LlamaGrammar(llama, {grammar})});
    return result;
}

/** Decode one text; return it with its values: predicted tokens that were used and that were refuted, confidences. */
async function text(question, {sequence, predictor}, seed) {
    const tokens = [...question.prompt];
    const before = {...sequence.tokenPredictions};
    await sequence.clearHistory();
    if (lookup)
        predictor.updateInputTokens(question.prompt);
    const confidences = [];
    const options = evaluation(question, tokens, seed);
    for await (const {token, confidence} of sequence.evaluateWithMetadata(question.prompt, {confidence: true}, options)) {
        tokens.push(token);
        confidences.push(confidence);
        if (tokens.length >= question.prompt.length + question.max_tokens || model.isEogToken(token))
            break;
    }
    const after = sequence.tokenPredictions;
    const more = (name) => after[name] - before[name];
    return {
        tokens: tokens.slice(question.prompt.length),
        accepted: more("used"),
        drafted: more("validated") + more("refuted"),
        confidences
    };
}

async function sample(question) {
    const {draft: drafting, ...options} = question.options ?? {};
    const all = await sequencesWith(drafting);
    const rows = new Array(question.n);
    await Promise.all(all.map(async (each, place) => {
        for (let row = place; row < question.n; row += all.length)
            rows[row] = await text({...question, options}, each, seedOf(question.seed, row));
    }));
    const column = (name) => rows.map((row) => row[name]);
    return Object.fromEntries(["tokens", "accepted", "drafted", "confidences"].map((name) => [name, column(name)]));
}

async function logprobs(question) {
    const [{sequence}] = await sequencesWith(question.options?.draft);
    await sequence.clearHistory();
    const steps = sequence.evaluateWithMetadata(question.prompt, {probabilities: true}, evaluation(question, [], 0));
    const {value} = await steps.next();
    await steps.return();
    const listed = [...value.probabilities].slice(0, question.top).filter(([, mass]) => mass > 0);
    return {logprobs: listed.map(([token, mass]) => [token, Math.log(mass)]), processed: true};
}

const reply = (answer) => process.stdout.write(JSON.stringify(answer) + "\n");
let answering = false;
// While a text is decoded, only work of the library keeps Node.js running. If none is left, the text never comes.
process.once("beforeExit", () => answering && reply({error: "a text never comes: the event loop has no work left"}));
for await (const line of createInterface({input: process.stdin})) {
    const question = JSON.parse(line);
    [answering] = [true, process.stdin.unref()];
    reply(await {sample, logprobs}[question.ask](question).catch((error) => ({error: String(error)})));
    [answering] = [false, process.stdin.ref()];
}
process.exit(0);
