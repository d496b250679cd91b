export { CoverageQuery } from './query.ts'
export { type CoveragePage, type CoverageQuestion, readPart } from './read.ts'
export { CoverageReport, PARTS, type Part } from './record.ts'
