// Compiles the service to dist/ and lays the SQL files beside it.
import { spawnSync } from 'node:child_process'
import { cpSync, rmSync } from 'node:fs'

rmSync('dist', { recursive: true, force: true })
const tsc = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], { stdio: 'inherit' })
if (tsc.status !== 0) process.exit(tsc.status ?? 1)
for (const folder of ['migrations', 'functions']) cpSync(`sql/${folder}`, `dist/sql/${folder}`, { recursive: true })
