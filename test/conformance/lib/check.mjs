// `check(name, fn)` is a test of node:test with a time limit.
import test from 'node:test'

const TIMEOUT_MS = 60_000

export const check = (name, fn) => test(name, { timeout: TIMEOUT_MS }, fn)
