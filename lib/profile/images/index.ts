export { type ImageFacts, readImageFacts } from './facts.ts'
export { imagesSnapshot, judgeImages } from './judge.ts'
export { imageSignedOf, signatureText } from './signatures.ts'
export { withImageTrust } from './trust.ts'
