// node-llama-cpp 3.21.1: the same seed gives unlike texts beside a draft model.
//
//     NODE_LLAMA_CPP=FOLDER node node_llamacpp_seed.mjs [FILE.gguf]
//
// FOLDER has node_modules; without FILE the tiny model of this repository is taken. Status 0 fixed, 1 present, 125 cannot
// be tested. 300 seeds are asked for twice, with a draft model of the same weights and, the control, without.
import {pathToFileURL} from "node:url";
const ours = new URL("../../../specverify/engines/node_llamacpp/models/target.gguf", import.meta.url).pathname;
try {
    const file = `${process.env.NODE_LLAMA_CPP}/node_modules/node-llama-cpp/dist/index.js`;
    const {getLlama, DraftSequenceTokenPredictor} = await import(pathToFileURL(file).href);
    const llama = await getLlama({gpu: false, build: "never", skipDownload: true, maxThreads: 1});
    const model = await llama.loadModel({modelPath: process.argv[2] ?? ours});
    const sizes = {sequences: 2, contextSize: 256, threads: 1, flashAttention: false};
    const [drafting, context] = [await model.createContext(sizes), await model.createContext(sizes)];

    async function texts(sequence) {
        const result = [];
        for (let seed = 0; seed < 300; seed++) {
            const tokens = [];
            await sequence.clearHistory();
            for await (const token of sequence.evaluate([3, 1, 2, 3, 1], {temperature: 1, seed, yieldEogToken: true}))
                if (tokens.push(token) === 8 || model.isEogToken(token))
                    break;
            result.push(tokens.join(" "));
        }
        return result;
    }
    async function differing(sequence) {
        const [first, second] = [await texts(sequence), await texts(sequence)];
        return first.filter((text, place) => text !== second[place]).length;
    }
    const tokenPredictor = new DraftSequenceTokenPredictor(drafting.getSequence(), {minTokens: 1, minConfidence: 0});
    const [plain, drafted] = [await differing(context.getSequence()), await differing(context.getSequence({tokenPredictor}))];
    console.log(`expected 0 of 300 texts that differ from the same call again, got ${drafted}; control ${plain}`);
    process.exit(plain > 0 ? 125 : drafted > 0 ? 1 : 0);
} catch (error) {
    console.log(`cannot be tested: ${error}`);
    process.exit(125);
}
