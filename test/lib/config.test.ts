import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Config, configTable, loadConfig, redacted } from '../../lib/config/index.ts'
import { fileWith, folder, refusalOf } from '../support/environment.ts'

const secret = 'a-secret-value-9d1f'

/** The lines of the ConfigError for this environment. */
const refusal = (env: NodeJS.ProcessEnv) => refusalOf(() => loadConfig(env))

test('an empty environment gives the defaults', () => {
  assert.deepEqual(loadConfig({}), {
    nodeEnv: 'development',
    listen: [
      { host: '127.0.0.1', port: 9090 },
      { host: '::1', port: 9090 },
    ],
    isLoopbackOnly: true,
    corsOrigins: [],
    consoleEnabled: true,
    tokenFiles: [],
    adminListen: [{ host: '127.0.0.1', port: 9091 }],
    databaseUrl: null,
    dataDir: '.data',
    logLevel: 'info',
    migrateOnStart: true,
    dbPoolMaxSize: 32,
    dbStatementTimeoutMs: 30_000,
    dbPrepare: true,
    dbMigrationMaxRetries: 10,
    readMemoryBudgetMb: 256,
    readAcquireWaitMs: 5000,
    memoryLimitMb: 0,
    jobs: 'in-process',
    peerLateResolveWindowSecs: 600,
    peerLateResolveIntervalSecs: 60,
    peerStaleAliveSecs: 900,
    evaluatorUrl: null,
    auditInflightPermits: 16,
    auditQueueCapacity: 2048,
    auditEvalTimeoutMs: 500,
    auditRetentionDays: 30,
    auditRetentionIntervalSecs: 3600,
    auditRetentionBatchSize: 5000,
    deadPodRetentionDays: 0,
    trafficRetentionDays: 14,
    flowEdgeRetentionDays: 90,
    trafficRetentionIntervalSecs: 3600,
    trafficRetentionBatchSize: 5000,
    trafficMaxRowsPerPod: 0,
    imageInventoryRetentionDays: 30,
    imageInventoryIntervalSecs: 3600,
    imageInventoryBatchSize: 5000,
    imageRunningWindowSecs: 900,
    wireNames: 'spec',
    metricsWorkloadLabels: 'all',
    supplyChainMaxInflatedBytes: 8_388_608,
    supplyChainIntervalSecs: 300,
    supplyChainRetentionDays: 30,
    supplyChainUnlinkedGraceHours: 24,
    sbomPageTtlSecs: 3600,
    supplyChainBatchSize: 50,
    inUseWindowHours: 24,
    tierEpss: 0.1,
    isUnknownExposed: true,
    attestationRetentionDays: 7,
    isSignatureDiscoveryEnabled: true,
    annotationPrefix: 'kguardian.dev',
    seccompProfileDir: 'kguardian',
    seccompProfilesCacheTtlSecs: 10,
    seccompNodeStaleSecs: 900,
    seccompDenialsRetentionDays: 30,
    seccompDenialsIntervalSecs: 3600,
    seccompDenialsBatchSize: 5000,
    seccompDenialMetricsIntervalSecs: 15,
    runtimeInventoryRetentionDays: 30,
    runtimeInventoryIntervalSecs: 3600,
    capabilityEvidenceWindowHours: 168,
    profileSnapshotIntervalSecs: 300,
    profileSnapshotBatch: 200,
    profileSnapshotTickBudgetSecs: null,
    profileVersionsMaxPerWorkload: 50,
    profileVersionsRetentionDays: 90,
    profileVersionsIntervalSecs: 3600,
    computeHistoryRetentionDays: 7,
    computeHistoryMinuteHours: 24,
    computeRetentionIntervalSecs: 600,
    computeStallSome: 20,
    computeRunqP99Ms: 20,
    computeMinRunqEvents: 50,
    computeThrottledRatio: 0.25,
    computeThrottledRatioMax: 0.1,
    computeBlameShare: 0.4,
    computeMemStallSome: 10,
    computeRefaultPerMin: 1000,
    telemetryEnabled: true,
    telemetryEndpoint: null,
    telemetryIntervalSecs: 86_400,
    chartVersion: 'unknown',
    kubeVersion: 'unknown',
    features: 'none',
    tokens: [],
    database: null,
    warnings: [],
  })
})

test('a blank value counts as unset, for every variable', () => {
  const names = [...configTable().matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name!)
  assert.ok(names.length > 20)
  for (const blank of ['', ' ', '\t \n']) {
    assert.deepEqual(loadConfig(Object.fromEntries(names.map((name) => [name, blank]))), loadConfig({}))
  }
})

test('values are trimmed', () => {
  const config = loadConfig({
    LOG_LEVEL: ' debug\n',
    DB_POOL_MAX_SIZE: ' 12 ',
    DATA_DIR: ' /srv/data ',
    BROKER_TOKEN_READ: `  ${secret} `,
    METRICS_WORKLOAD_LABELS: ' admin ',
  })
  assert.equal(config.logLevel, 'debug')
  assert.equal(config.dbPoolMaxSize, 12)
  assert.equal(config.dataDir, '/srv/data')
  assert.equal(config.tokens[0]?.value, secret)
  assert.deepEqual(config.warnings, [])
})

const numbers: [name: string, key: keyof Config, text: string, value: number][] = [
  ['DB_POOL_MAX_SIZE', 'dbPoolMaxSize', '6', 6],
  ['DB_STATEMENT_TIMEOUT_MS', 'dbStatementTimeoutMs', '0', 0],
  ['DB_STATEMENT_TIMEOUT_MS', 'dbStatementTimeoutMs', '2147483647', 2147483647],
  ['DB_MIGRATION_MAX_RETRIES', 'dbMigrationMaxRetries', '1', 1],
  ['BROKER_READ_MEMORY_BUDGET_MB', 'readMemoryBudgetMb', '1', 1],
  ['BROKER_READ_ACQUIRE_WAIT_MS', 'readAcquireWaitMs', '0', 0],
  ['PEER_LATE_RESOLVE_WINDOW_SECS', 'peerLateResolveWindowSecs', '0', 0],
  ['PEER_LATE_RESOLVE_INTERVAL_SECS', 'peerLateResolveIntervalSecs', '5', 5],
  ['PEER_STALE_ALIVE_SECS', 'peerStaleAliveSecs', '0', 0],
  ['AUDIT_INFLIGHT_PERMITS', 'auditInflightPermits', '1', 1],
  ['AUDIT_QUEUE_CAPACITY', 'auditQueueCapacity', '1', 1],
  ['AUDIT_EVAL_TIMEOUT_MS', 'auditEvalTimeoutMs', '50', 50],
  ['AUDIT_VERDICTS_RETENTION_DAYS', 'auditRetentionDays', '0', 0],
  ['AUDIT_VERDICTS_RETENTION_INTERVAL_SECS', 'auditRetentionIntervalSecs', '60', 60],
  ['AUDIT_VERDICTS_RETENTION_BATCH_SIZE', 'auditRetentionBatchSize', '100', 100],
  ['DEAD_POD_RETENTION_DAYS', 'deadPodRetentionDays', '3', 3],
  ['POD_TRAFFIC_RETENTION_DAYS', 'trafficRetentionDays', '0', 0],
  ['POD_TRAFFIC_RETENTION_INTERVAL_SECS', 'trafficRetentionIntervalSecs', '60', 60],
  ['POD_TRAFFIC_RETENTION_BATCH_SIZE', 'trafficRetentionBatchSize', '100000', 100_000],
  ['POD_TRAFFIC_MAX_ROWS_PER_POD', 'trafficMaxRowsPerPod', '20000', 20_000],
  ['IMAGE_INVENTORY_RETENTION_DAYS', 'imageInventoryRetentionDays', '0', 0],
  ['IMAGE_INVENTORY_RETENTION_INTERVAL_SECS', 'imageInventoryIntervalSecs', '60', 60],
  ['IMAGE_INVENTORY_RETENTION_BATCH_SIZE', 'imageInventoryBatchSize', '100', 100],
  ['IMAGE_INVENTORY_RUNNING_WINDOW_SECS', 'imageRunningWindowSecs', '604800', 604_800],
  ['RUNTIME_INVENTORY_RETENTION_DAYS', 'runtimeInventoryRetentionDays', '0', 0],
  ['RUNTIME_INVENTORY_RETENTION_INTERVAL_SECS', 'runtimeInventoryIntervalSecs', '60', 60],
  ['CAPABILITY_EVIDENCE_WINDOW_HOURS', 'capabilityEvidenceWindowHours', '24', 24],
  ['CAPABILITY_EVIDENCE_WINDOW_HOURS', 'capabilityEvidenceWindowHours', '2160', 2160],
  ['PROFILE_SNAPSHOT_INTERVAL_SECS', 'profileSnapshotIntervalSecs', '60', 60],
  ['PROFILE_SNAPSHOT_BATCH', 'profileSnapshotBatch', '1', 1],
  ['PROFILE_SNAPSHOT_BATCH', 'profileSnapshotBatch', '5000', 5000],
  ['PROFILE_SNAPSHOT_TICK_BUDGET_SECS', 'profileSnapshotTickBudgetSecs', '0', 0],
  ['PROFILE_SNAPSHOT_TICK_BUDGET_SECS', 'profileSnapshotTickBudgetSecs', '86400', 86_400],
  ['PROFILE_VERSIONS_MAX_PER_WORKLOAD', 'profileVersionsMaxPerWorkload', '1', 1],
  ['PROFILE_VERSIONS_MAX_PER_WORKLOAD', 'profileVersionsMaxPerWorkload', '1000', 1000],
  ['PROFILE_VERSIONS_RETENTION_DAYS', 'profileVersionsRetentionDays', '0', 0],
  ['PROFILE_VERSIONS_RETENTION_INTERVAL_SECS', 'profileVersionsIntervalSecs', '60', 60],
  ['COMPUTE_HISTORY_RETENTION_DAYS', 'computeHistoryRetentionDays', '0', 0],
  ['COMPUTE_HISTORY_MINUTE_HOURS', 'computeHistoryMinuteHours', '1', 1],
  ['COMPUTE_RETENTION_INTERVAL_SECS', 'computeRetentionIntervalSecs', '60', 60],
  ['TELEMETRY_INTERVAL_SECS', 'telemetryIntervalSecs', '3600', 3600],
]
for (const [name, key, text, value] of numbers) {
  test(`${name}=${text} is accepted unchanged`, () => {
    const config = loadConfig({ [name]: text })
    assert.equal(config[key], value)
    assert.deepEqual(config.warnings, [])
  })
}

const moved: [name: string, key: keyof Config, text: string, value: number][] = [
  ['DB_POOL_MAX_SIZE', 'dbPoolMaxSize', '5', 6],
  ['DB_POOL_MAX_SIZE', 'dbPoolMaxSize', '0', 6],
  ['DB_POOL_MAX_SIZE', 'dbPoolMaxSize', '1001', 1000],
  ['DB_STATEMENT_TIMEOUT_MS', 'dbStatementTimeoutMs', '2147483648', 2147483647],
  ['DB_MIGRATION_MAX_RETRIES', 'dbMigrationMaxRetries', '0', 1],
  ['BROKER_READ_MEMORY_BUDGET_MB', 'readMemoryBudgetMb', '0', 1],
  ['BROKER_READ_ACQUIRE_WAIT_MS', 'readAcquireWaitMs', '9'.repeat(400), 2147483647],
  ['PEER_LATE_RESOLVE_INTERVAL_SECS', 'peerLateResolveIntervalSecs', '4', 5],
  ['AUDIT_INFLIGHT_PERMITS', 'auditInflightPermits', '0', 1],
  ['AUDIT_QUEUE_CAPACITY', 'auditQueueCapacity', '0', 1],
  ['AUDIT_EVAL_TIMEOUT_MS', 'auditEvalTimeoutMs', '49', 50],
  ['AUDIT_VERDICTS_RETENTION_INTERVAL_SECS', 'auditRetentionIntervalSecs', '59', 60],
  ['AUDIT_VERDICTS_RETENTION_BATCH_SIZE', 'auditRetentionBatchSize', '99', 100],
  ['AUDIT_VERDICTS_RETENTION_BATCH_SIZE', 'auditRetentionBatchSize', '100001', 100_000],
  ['POD_TRAFFIC_RETENTION_INTERVAL_SECS', 'trafficRetentionIntervalSecs', '1', 60],
  ['POD_TRAFFIC_RETENTION_BATCH_SIZE', 'trafficRetentionBatchSize', '1', 100],
  ['IMAGE_INVENTORY_RETENTION_INTERVAL_SECS', 'imageInventoryIntervalSecs', '59', 60],
  ['IMAGE_INVENTORY_RUNNING_WINDOW_SECS', 'imageRunningWindowSecs', '359', 360],
  ['IMAGE_INVENTORY_RUNNING_WINDOW_SECS', 'imageRunningWindowSecs', '604801', 604_800],
  ['RUNTIME_INVENTORY_RETENTION_DAYS', 'runtimeInventoryRetentionDays', '36501', 36_500],
  ['RUNTIME_INVENTORY_RETENTION_INTERVAL_SECS', 'runtimeInventoryIntervalSecs', '59', 60],
  ['CAPABILITY_EVIDENCE_WINDOW_HOURS', 'capabilityEvidenceWindowHours', '23', 24],
  ['CAPABILITY_EVIDENCE_WINDOW_HOURS', 'capabilityEvidenceWindowHours', '2161', 2160],
  ['PROFILE_SNAPSHOT_INTERVAL_SECS', 'profileSnapshotIntervalSecs', '59', 60],
  ['PROFILE_SNAPSHOT_BATCH', 'profileSnapshotBatch', '0', 1],
  ['PROFILE_SNAPSHOT_BATCH', 'profileSnapshotBatch', '5001', 5000],
  ['PROFILE_SNAPSHOT_TICK_BUDGET_SECS', 'profileSnapshotTickBudgetSecs', '86401', 86_400],
  ['PROFILE_VERSIONS_MAX_PER_WORKLOAD', 'profileVersionsMaxPerWorkload', '0', 1],
  ['PROFILE_VERSIONS_MAX_PER_WORKLOAD', 'profileVersionsMaxPerWorkload', '1001', 1000],
  ['PROFILE_VERSIONS_RETENTION_INTERVAL_SECS', 'profileVersionsIntervalSecs', '59', 60],
  ['COMPUTE_HISTORY_MINUTE_HOURS', 'computeHistoryMinuteHours', '0', 1],
  ['COMPUTE_RETENTION_INTERVAL_SECS', 'computeRetentionIntervalSecs', '59', 60],
  ['TELEMETRY_INTERVAL_SECS', 'telemetryIntervalSecs', '3599', 3600],
]
const thresholds = [
  'COMPUTE_THRESHOLD_STALL_SOME',
  'COMPUTE_THRESHOLD_RUNQ_P99_MS',
  'COMPUTE_THRESHOLD_MIN_RUNQ_EVENTS',
  'COMPUTE_THRESHOLD_THROTTLED_RATIO',
  'COMPUTE_THRESHOLD_THROTTLED_RATIO_MAX',
  'COMPUTE_THRESHOLD_BLAME_SHARE',
  'COMPUTE_THRESHOLD_MEM_STALL_SOME',
  'COMPUTE_THRESHOLD_REFAULT_PER_MIN',
]
for (const name of thresholds) {
  test(`${name} accepts any number that is not negative; nonsense gives the default`, () => {
    for (const [text, value] of [
      ['0', 0],
      ['0.05', 0.05],
      ['.5', 0.5],
      ['2.', 2],
      ['1e3', 1000],
      [' +7 ', 7],
    ] as const) {
      const { warnings, ...values } = loadConfig({ [name]: text })
      const { warnings: none, ...defaults } = loadConfig({})
      assert.deepEqual(warnings, [])
      const changed = Object.entries(values).filter(
        ([key, of]) => of !== (defaults as Record<string, unknown>)[key] && typeof of === 'number',
      )
      assert.ok(changed.length <= 1 && changed.every(([, of]) => of === value), text)
    }
    for (const nonsense of ['many', '-1', '1e999', '0x10', 'NaN', 'Infinity', '1,5', '.']) {
      const { warnings, ...values } = loadConfig({ [name]: nonsense })
      const { warnings: none, ...defaults } = loadConfig({})
      assert.deepEqual(values, defaults, nonsense)
      assert.ok(warnings.length === 1 && warnings[0]?.startsWith(`${name}:`), nonsense)
    }
  })
}

for (const [name, key, text, value] of moved) {
  test(`${name}=${text.slice(0, 12)} is moved to ${value} with a warning`, () => {
    const config = loadConfig({ [name]: text })
    assert.equal(config[key], value)
    assert.equal(config.warnings.length, 1)
    assert.ok(config.warnings[0]?.startsWith(`${name}:`))
  })
}

for (const name of [...new Set(numbers.map(([name]) => name)), 'BROKER_MEMORY_LIMIT_MB']) {
  test(`nonsense in ${name} gives the default, with a warning`, () => {
    for (const nonsense of ['many', '-1', '1.5', '1e3', '0x10', '12 34', '١٢', 'NaN', 'null']) {
      const { warnings, ...values } = loadConfig({ [name]: nonsense })
      const { warnings: none, ...defaults } = loadConfig({})
      assert.deepEqual(values, defaults, nonsense)
      assert.equal(warnings.length, 1, nonsense)
      assert.ok(warnings[0]?.startsWith(`${name}:`), nonsense)
    }
  })
}

const refused: [name: string, values: string[]][] = [
  ['NODE_ENV', ['prod', 'staging']],
  ['LOG_LEVEL', ['verbose', '30', 'info,debug']],
  ['JOBS', ['none', 'in process']],
  ['MIGRATE_ON_START', ['maybe', '2', 'truee']],
  ['DB_PREPARE', ['maybe', '-1']],
  ['EVALUATOR_URL', ['evaluator:8080', 'ftp://evaluator', 'http://', `http://u:${secret}@:x`, '/evaluate']],
  [
    'DATABASE_URL',
    [
      'nonsense',
      'mysql://h/db',
      `postgres:${secret}`,
      `postgres://u:${secret}@h:port/db`,
      `postgres://u:%zz${secret}@h/db`,
    ],
  ],
]
// biome-ignore format: a list
const badAddresses = [
  '9090', ':9090', 'localhost', 'localhost:', 'localhost:65536', 'localhost:-1', 'localhost:http', '::1:9090', '[::1]', '[::1]:', '[]:9090', '[127.0.0.1]:9090',
  '[::g]:9090', '1.2.3:9090', '256.0.0.1:9090', 'http://localhost:9090', 'local host:9090', 'a,b:9090',
]
for (const [name, values] of [
  ...refused,
  ['LISTEN_ADDR', badAddresses],
  ['ADMIN_ADDR', badAddresses],
] as typeof refused) {
  test(`nonsense in ${name} is refused on one line with the name and without the value`, () => {
    for (const value of values) {
      const lines = refusal({ [name]: value })
      assert.equal(lines.length, 1, value)
      assert.ok(lines[0]?.startsWith(`${name}:`), lines[0])
      assert.ok(!lines[0]?.includes(secret))
    }
  })
}

test('every invalid variable has its own line', () => {
  const lines = refusal({ LISTEN_ADDR: 'x', LOG_LEVEL: 'x', JOBS: 'x', DB_POOL_MAX_SIZE: 'x', NODE_ENV: 'production' })
  assert.deepEqual(
    lines.map((line) => line.split(/[: ]/)[0]),
    ['LISTEN_ADDR', 'LOG_LEVEL', 'JOBS', 'DATABASE_URL'],
  )
})

test('an explicit address is bound as written, and no other', () => {
  const cases: [string, string, number][] = [
    ['0.0.0.0:80', '0.0.0.0', 80],
    ['[::]:9090', '::', 9090],
    ['[::1]:0', '::1', 0],
    ['[fe80::1%eth0]:65535', 'fe80::1%eth0', 65535],
    ['localhost:9090', 'localhost', 9090],
    ['broker-0.svc:9090', 'broker-0.svc', 9090],
  ]
  for (const [text, host, port] of cases) {
    assert.deepEqual(loadConfig({ LISTEN_ADDR: text }).listen, [{ host, port }])
    assert.deepEqual(loadConfig({ ADMIN_ADDR: text }).adminListen, [{ host, port }])
  }
})

test('words and flags are read in any case', () => {
  const config = loadConfig({
    LOG_LEVEL: 'WARN',
    JOBS: 'External',
    MIGRATE_ON_START: 'False',
    DB_PREPARE: 'off',
    NODE_ENV: 'Test',
  })
  assert.deepEqual(
    [config.logLevel, config.jobs, config.migrateOnStart, config.dbPrepare, config.nodeEnv],
    ['warn', 'external', false, false, 'test'],
  )
  for (const yes of ['true', '1', 'yes', 'on']) assert.equal(loadConfig({ DB_PREPARE: yes }).dbPrepare, true)
  for (const no of ['false', '0', 'no', 'off']) assert.equal(loadConfig({ MIGRATE_ON_START: no }).migrateOnStart, false)
})

test('the check-in is on unless turned off by a known word, and its address must be a URL', () => {
  for (const off of ['false', '0', 'no', 'off', 'FALSE', ' Off '])
    assert.equal(loadConfig({ TELEMETRY_ENABLED: off }).telemetryEnabled, false)
  for (const on of ['true', '1', 'maybe', 'disabled', ''])
    assert.equal(loadConfig({ TELEMETRY_ENABLED: on }).telemetryEnabled, true)
  assert.equal(loadConfig({ TELEMETRY_ENDPOINT: 'https://v.test/x' }).telemetryEndpoint, 'https://v.test/x')
  for (const nonsense of ['v.test', 'ftp://v.test', 'https://']) {
    const { telemetryEndpoint, warnings } = loadConfig({ TELEMETRY_ENDPOINT: nonsense })
    assert.equal(telemetryEndpoint, null)
    assert.equal(warnings.length, 1)
  }
})

test('build metadata is cut from the version of the chart, and features are slugs', () => {
  const chart = (text: string) => loadConfig({ CHART_VERSION: text }).chartVersion
  assert.deepEqual(
    [chart('2.4.0+build.7'), chart('2.4.0'), chart('+x'), chart(' ')],
    ['2.4.0', '2.4.0', 'unknown', 'unknown'],
  )
  const features = (text: string) => loadConfig({ FEATURES: text }).features
  assert.equal(features('ai,audit,netpol_2'), 'ai,audit,netpol_2')
  assert.equal(features('a'.repeat(400)).length, 400)
  for (const bad of ['a'.repeat(401), 'ai audit', 'AI', 'ai;sso', '']) assert.equal(features(bad), 'none', bad)
})

test('production without a database is refused on one line', () => {
  assert.deepEqual(refusal({ NODE_ENV: 'production' }), ['DATABASE_URL or PGHOST is required in production'])
  assert.deepEqual(refusal({ NODE_ENV: 'production', DATABASE_URL: '  ' }), [
    'DATABASE_URL or PGHOST is required in production',
  ])
  assert.equal(refusal({ NODE_ENV: 'production', DATABASE_URL: 'x' }).length, 1)
  assert.equal(
    loadConfig({ NODE_ENV: 'production', DATABASE_URL: 'postgres://u@h/db' }).databaseUrl,
    'postgres://u@h/db',
  )
})

test('an evaluator raises the pool to eight more than its permits', () => {
  const at = (permits: string, size: string, evaluator = 'http://evaluator') => {
    const { dbPoolMaxSize, warnings } = loadConfig({
      AUDIT_INFLIGHT_PERMITS: permits,
      DB_POOL_MAX_SIZE: size,
      EVALUATOR_URL: evaluator,
    })
    return [dbPoolMaxSize, warnings.length]
  }
  assert.deepEqual(at('16', '23'), [24, 1])
  assert.deepEqual(at('16', '24'), [24, 0])
  assert.deepEqual(at('1', '6'), [9, 1])
  assert.deepEqual(at('25', ''), [33, 1])
  assert.deepEqual(at('1024', '1000'), [1032, 1])
  assert.deepEqual(at('16', '6', ''), [6, 0])
  assert.match(
    loadConfig({ EVALUATOR_URL: 'http://evaluator', DB_POOL_MAX_SIZE: '6' }).warnings[0]!,
    /^DB_POOL_MAX_SIZE: 6 is raised to 24, 8 more than AUDIT_INFLIGHT_PERMITS$/,
  )
})

test('the memory limit lowers the read budget to 30 % of it', () => {
  const at = (budget: string, limit: string) => {
    const { readMemoryBudgetMb, warnings } = loadConfig({
      BROKER_READ_MEMORY_BUDGET_MB: budget,
      BROKER_MEMORY_LIMIT_MB: limit,
    })
    return [readMemoryBudgetMb, warnings.length]
  }
  assert.deepEqual(at('256', '512'), [153, 1])
  assert.deepEqual(at('', '512'), [153, 1])
  assert.deepEqual(at('300', '1000'), [300, 0])
  assert.deepEqual(at('301', '1000'), [300, 1])
  assert.deepEqual(at('256', '0'), [256, 0])
  assert.deepEqual(at('256', '1'), [1, 1])
})

test('each token comes from its variable or from a file, whose line end is not part of it', () => {
  for (const variable of [
    'BROKER_TOKEN_READ',
    'BROKER_TOKEN_INGEST',
    'BROKER_TOKEN_SUPPLYCHAIN',
    'BROKER_TOKEN_ADMIN',
    'BROKER_TOKEN_CATALOG',
    'BROKER_AUTH_TOKEN',
  ] as const) {
    assert.deepEqual(loadConfig({ [variable]: secret }).tokens, [{ variable, source: variable, value: secret }])
    const path = fileWith(variable, `${secret}\r\n`)
    const config = loadConfig({ [`${variable}_FILE`]: ` ${path} `, [variable]: ' ' })
    assert.deepEqual(config.tokens, [{ variable, source: `${variable}_FILE`, value: secret }])
  }
})

test('a variable and its file together are refused', () => {
  const lines = refusal({ BROKER_TOKEN_READ: secret, BROKER_TOKEN_READ_FILE: fileWith('both', 'x'.repeat(20)) })
  assert.equal(lines.length, 1)
  assert.match(lines[0]!, /BROKER_TOKEN_READ and BROKER_TOKEN_READ_FILE/)
  assert.ok(!lines[0]!.includes(secret))
})

test('a token file that is unreadable or empty is refused with its variable and path', () => {
  for (const path of [join(folder, 'absent'), folder, fileWith('empty', ''), fileWith('blank', ' \n')]) {
    const lines = refusal({ BROKER_AUTH_TOKEN_FILE: path })
    assert.equal(lines.length, 1)
    assert.ok(lines[0]!.includes('BROKER_AUTH_TOKEN_FILE') && lines[0]!.includes(path), lines[0])
  }
})

test('a short token is a warning that names the variable', () => {
  const warnings = (value: string) => loadConfig({ BROKER_TOKEN_READ: value, METRICS_WORKLOAD_LABELS: 'off' }).warnings
  assert.deepEqual(warnings('x'.repeat(16)), [])
  assert.equal(warnings('x'.repeat(15)).length, 1)
  assert.match(warnings('quince')[0]!, /^BROKER_TOKEN_READ:/)
  assert.ok(!warnings('quince')[0]!.includes('quince'))
})

test('a token that no header can carry gives a warning', () => {
  const warnings = (value: string) => loadConfig({ BROKER_TOKEN_READ: value, METRICS_WORKLOAD_LABELS: 'off' }).warnings
  assert.equal(warnings(`${secret}\n${secret}`).length, 1)
  assert.equal(warnings(`${secret}é`).length, 1)
})

test('a token under an unknown name gives a warning with the variable, and grants nothing', () => {
  for (const name of ['BROKER_TOKEN_ADMINS', 'BROKER_TOKEN_CATALOG_FILES', 'BROKER_TOKEN_INJEST']) {
    const { warnings, tokens } = loadConfig({ [name]: secret })
    assert.deepEqual(warnings, [`${name}: unknown variable; it grants nothing and does not turn authentication on`])
    assert.deepEqual(tokens, [])
  }
  assert.deepEqual(loadConfig({ BROKER_TOKEN_ADMIN: ' ', BROKER_TOKEN_READ_FILE: '' }).warnings, [])
})

test('a token for the catalog of nodes gives a warning that it opens nothing, and turns authentication on', () => {
  const { warnings, tokens } = loadConfig({ BROKER_TOKEN_CATALOG: secret, METRICS_WORKLOAD_LABELS: 'off' })
  assert.equal(warnings.length, 1)
  assert.match(warnings[0]!, /^BROKER_TOKEN_CATALOG: .*opens nothing$/)
  assert.equal(tokens.length, 1)
})

test('the printed configuration has neither tokens nor the password', () => {
  const env = {
    BROKER_TOKEN_READ: `${secret}-1`,
    BROKER_TOKEN_INGEST_FILE: fileWith('ingest', `${secret}-2`),
    DATABASE_URL: `postgres://app:${secret}@db:5432/broker`,
    EVALUATOR_URL: `http://app:${secret}@evaluator:8080/`,
  }
  const printed = redacted(loadConfig(env))
  assert.ok(!JSON.stringify(printed).includes(secret))
  assert.deepEqual(printed.tokens, ['BROKER_TOKEN_READ', 'BROKER_TOKEN_INGEST_FILE'])
  assert.equal(printed.DATABASE_URL, 'postgres://app:***@db:5432/broker')
  assert.equal(printed.EVALUATOR_URL, 'http://app:***@evaluator:8080/')
  assert.equal(printed.LISTEN_ADDR, '[::]:9090, 0.0.0.0:9090')
  assert.equal(printed.DB_POOL_MAX_SIZE, 32)
})

const urls: [url: string, printed: string][] = [
  ['postgres://db/broker', 'postgres://db/broker'],
  ['postgresql://app@db/broker', 'postgresql://app@db/broker'],
  [`postgres://app:${secret}@db1:5432,db2:5433/broker`, 'postgres://app:***@db1:5432,db2:5433/broker'],
  [`postgres://app:x@${secret}@db/broker`, 'postgres://app:***@db/broker'],
  [`postgres:///broker?host=/run/pg&password=${secret}`, 'postgres:///broker'],
  [`postgres://app@db/broker?password=a@${secret}`, 'postgres://***'],
]
for (const [url, printed] of urls) {
  test(`the database is printed as ${printed}`, () =>
    assert.equal(redacted(loadConfig({ DATABASE_URL: url })).DATABASE_URL, printed))
}

test('the table in docs/configuration.md is up to date', () => {
  const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
  assert.ok(
    page.includes(`<!-- config:start -->\n${configTable()}\n<!-- config:end -->`),
    'docs/configuration.md drifted: run `npm run docs`',
  )
})
