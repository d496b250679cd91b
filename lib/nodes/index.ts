export { AgentClocks } from './agent-clocks.ts'
export { PLATFORM_WORDS, readEnvironment } from './environment.ts'
export { staleAfterSecs } from './stale-after.ts'
