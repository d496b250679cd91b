export { PLATFORM_WORDS, readEnvironment } from './environment.ts'
