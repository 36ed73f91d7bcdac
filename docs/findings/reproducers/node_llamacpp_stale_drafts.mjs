// node-llama-cpp 3.21.1: the draft model drafts for another text than the one that is decoded.
//
//     NODE_LLAMA_CPP=FOLDER node node_llamacpp_stale_drafts.mjs [FILE.gguf]
//
// FOLDER has node_modules; without FILE the tiny model of this repository is taken. Status 0 fixed, 1 present, 125 cannot
// be tested. One greedy draft a round by the model itself is its next token. The control is a predictor that returns it.
import {pathToFileURL} from "node:url";
const ours = new URL("../../../specverify/engines/node_llamacpp/models/target.gguf", import.meta.url).pathname;
try {
    const file = `${process.env.NODE_LLAMA_CPP}/node_modules/node-llama-cpp/dist/index.js`;
    const {getLlama, DraftSequenceTokenPredictor, TokenPredictor} = await import(pathToFileURL(file).href);
    const llama = await getLlama({gpu: false, build: "never", skipDownload: true, maxThreads: 1});
    const model = await llama.loadModel({modelPath: process.argv[2] ?? ours});
    const sizes = {sequences: 3, contextSize: 256, threads: 1, flashAttention: false};
    const [drafting, context] = [await model.createContext(sizes), await model.createContext(sizes)];

    class Known extends TokenPredictor {
        constructor(text) { super(); Object.assign(this, {text, done: 0}); }
        reset() { this.done = 0; }
        pushTokens(tokens) { this.done += tokens.length; }
        predictTokens() { return this.text.slice(this.done, this.done + 1); }
    }
    async function decode(tokenPredictor) {
        const sequence = context.getSequence({tokenPredictor}), tokens = [];
        for await (const token of sequence.evaluate([3, 1, 2, 3, 1], {temperature: 0, yieldEogToken: true}))
            if (tokens.push(token) === 24)
                break;
        return [tokens, sequence.tokenPredictions];
    }
    const options = {minTokens: 1, maxTokens: 1, minConfidence: 0}, [text] = await decode();
    const [, known] = await decode(new Known(text));
    const [, own] = await decode(new DraftSequenceTokenPredictor(drafting.getSequence(), options));
    console.log(`expected 0 drafts refuted, got ${own.refuted} and ${own.used} used; control ${known.refuted} and ${known.used}`);
    process.exit(known.refuted > 0 ? 125 : own.refuted > 0 ? 1 : 0);
} catch (error) {
    console.log(`cannot be tested: ${error}`);
    process.exit(125);
}
