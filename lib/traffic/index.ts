export { type Flow, FlowBatch, FlowPost } from './flow.ts'
export { asArray, type Page, readFirstPages, readNextPage, readPage, streamPages } from './pages.ts'
export { SeenFlows } from './seen.ts'
export { FlowWriter } from './writer.ts'
