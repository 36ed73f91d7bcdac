// node-llama-cpp 3.21.1: `tokenBias` beside a draft model ends the process.
//
//     NODE_LLAMA_CPP=FOLDER node node_llamacpp_bias.mjs [FILE.gguf]
//
// FOLDER has node_modules; without FILE the tiny model of this repository is taken. Status 0 fixed, 1 present, 125 cannot
// be tested. The text with drafts of the same weights must be the greedy text without a draft model: that is the control.
import {pathToFileURL} from "node:url";
const ours = new URL("../../../specverify/engines/node_llamacpp/models/target.gguf", import.meta.url).pathname;
let plain;
process.on("unhandledRejection", (error) => {
    console.log(`expected ${plain}, got an error that no caller can catch: ${String(error).slice(0, 90)}`);
    process.exit(1);
});
try {
    const file = `${process.env.NODE_LLAMA_CPP}/node_modules/node-llama-cpp/dist/index.js`;
    const {getLlama, DraftSequenceTokenPredictor, TokenBias} = await import(pathToFileURL(file).href);
    const llama = await getLlama({gpu: false, build: "never", skipDownload: true, maxThreads: 1});
    const sizes = {contextSize: 256, threads: 1, flashAttention: false};
    const models = [], contexts = [];
    for (let i = 0; i < 2; i++) {
        models.push(await llama.loadModel({modelPath: process.argv[2] ?? ours}));
        contexts.push(await models[i].createContext({...sizes, sequences: 2}));
    }
    async function text(tokenPredictor) {
        const tokens = [], tokenBias = TokenBias.for(models[0]).set(3, {logit: -1});
        const sequence = contexts[0].getSequence({tokenPredictor});
        for await (const token of sequence.evaluate([3, 1, 2, 3, 1], {temperature: 0, tokenBias, yieldEogToken: true}))
            if (tokens.push(token) === 4 || models[0].isEogToken(token))
                break;
        return tokens.join(" ");
    }
    plain = await text();
    const drafted = await text(new DraftSequenceTokenPredictor(contexts[1].getSequence(), {minTokens: 2}));
    console.log(`expected ${plain}, got ${drafted}`);
    process.exit(plain === drafted ? 0 : 1);
} catch (error) {
    console.log(`cannot be tested: ${error}`);
    process.exit(125);
}
