/** The rendered manifests of the chart, for each toggle. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, test } from 'node:test'
import { rootCertificates } from 'node:tls'
import { Cron } from 'croner'
import { routes } from '../../handlers/router.ts'
import { jobs } from '../../jobs/index.ts'
import { type Config, configTable, loadConfig } from '../../lib/config/index.ts'
import { declaredRoutes } from '../../lib/http/access.ts'
import { createMetrics } from '../../lib/metrics/index.ts'
import { DenialSeries } from '../../lib/seccomp/denials/series.ts'
import { VERSION } from '../../lib/version.ts'
import { WIRE_NAMES, type WireNames } from '../../lib/wire-names/index.ts'
import { at, readValues } from '../../scripts/chart-values.ts'
import { createMetrics as createEdgeMetrics } from '../../wrangler-free-deploy/edge/metrics.ts'
import {
  container,
  environment,
  find,
  type Json,
  type Manifest,
  object,
  ofKind,
  podTemplate,
  rendered,
  skip,
  toggles,
  workloads,
} from './rendered.ts'
import { faults } from './restricted.ts'

const MIB = 1024 * 1024
/** Limit of names of CronJobs, to which the cluster appends a time, and of all others. */
const MAX_NAME_CHARS: Record<string, number> = { CronJob: 52, StatefulSet: 52 }
const MAX_OTHER_NAME_CHARS = 63

const folder = mkdtempSync(join(tmpdir(), 'chart-'))
after(() => rmSync(folder, { recursive: true }))

/** The environment of a container, with made-up contents of secrets. */
function lived(manifest: Manifest): NodeJS.ProcessEnv {
  const password = join(folder, 'password')
  writeFileSync(password, 'a-password')
  const authority = join(folder, 'ca.crt')
  writeFileSync(authority, rootCertificates[0]!)
  const value = ([name, given]: [string, Json]) => {
    if (name === 'DATABASE_PASSWORD_FILE') return [name, password]
    if (/TOKEN.*_FILE$/.test(name)) return [name, tokenFile(basename(given.split(',')[0]))]
    if (name === 'PGSSLROOTCERT') return [name, authority]
    if (typeof given === 'string') return [name, given]
    return [
      name,
      name === 'DATABASE_URL' ? 'postgres://broker@db/broker' : `token-of-${given.secretKeyRef.key}-for-tests`,
    ]
  }
  const { PGSSLCERT: _, PGSSLKEY: __, ...rest } = environment(manifest)
  return Object.fromEntries(Object.entries(rest).map(value))
}
function tokenFile(key: string): string {
  const path = join(folder, key)
  writeFileSync(path, `token-of-${key}-for-tests`)
  return path
}
const configOf = (toggle: string): Config => loadConfig(lived(object(toggle, 'Deployment', 'broker')))

if (skip) test('what the chart renders', { skip }, () => {})

/** A test for each toggle. */
function each(what: string, check: (toggle: string) => void): void {
  for (const toggle of toggles) test(`${toggle}: ${what}`, () => check(toggle))
}

/** A test, where anything was rendered. */
function one(what: string, check: () => void | Promise<void>): void {
  if (!skip) test(what, check)
}

const selects = (selector: Record<string, string>, labels: Record<string, string> = {}) =>
  Object.entries(selector).every(([name, value]) => labels[name] === value)
const labelsOf = (manifest: Manifest): Record<string, string> => podTemplate(manifest).metadata.labels

each('no object is rendered twice', (toggle) => {
  const names = rendered(toggle).map(({ kind, metadata }) => `${kind}/${metadata.namespace ?? ''}/${metadata.name}`)
  assert.deepEqual(names, [...new Set(names)])
})

each('names are within the limits, and all namespaced objects are in the namespace of the release', (toggle) => {
  for (const { kind, metadata } of rendered(toggle)) {
    assert.ok(metadata.name.length <= (MAX_NAME_CHARS[kind] ?? MAX_OTHER_NAME_CHARS), `${kind} ${metadata.name}`)
    assert.equal(
      metadata.namespace,
      kind.startsWith('ClusterRole') ? undefined : 'telemetry',
      `${kind} ${metadata.name}`,
    )
  }
})

each(
  'pods meet the Pod Security Standard `restricted` and have a read-only root; only the controller is privileged',
  (toggle) => {
    for (const manifest of workloads(toggle)) {
      const { spec } = podTemplate(manifest)
      if (manifest.kind === 'DaemonSet') {
        assert.ok(faults(spec).includes('controller: privileged'))
        continue
      }
      assert.deepEqual(faults(spec), [], manifest.metadata.name)
      for (const { securityContext } of spec.containers) assert.equal(securityContext.readOnlyRootFilesystem, true)
      // Without ids in the values the cluster sets them.
      const user = toggle === 'openshift' ? undefined : manifest.kind === 'StatefulSet' ? 999 : 1000
      assert.deepEqual([spec.securityContext.runAsUser, spec.securityContext.fsGroup], [user, user])
    }
  },
)

each(
  'only pods that read from the Kubernetes API have its token, and no pod has the variables of Services',
  (toggle) => {
    for (const manifest of workloads(toggle)) {
      const { spec } = podTemplate(manifest)
      const isReader = manifest.kind === 'DaemonSet' || environment(manifest).TRIVY_OPERATOR_ENABLED === 'true'
      assert.equal(spec.automountServiceAccountToken, isReader, manifest.metadata.name)
      assert.equal(spec.enableServiceLinks, false, manifest.metadata.name)
    }
    for (const account of ofKind(toggle, 'ServiceAccount')) assert.equal(account.automountServiceAccountToken, false)
    const bound = ofKind(toggle, 'ClusterRoleBinding').flatMap(({ subjects }) =>
      subjects.map((subject: Json) => subject.name),
    )
    assert.deepEqual(
      bound.filter((name) => !/-(controller|supplychain)$/.test(name)),
      [],
    )
    assert.equal(ofKind(toggle, 'Role').length + ofKind(toggle, 'RoleBinding').length, 0)
  },
)

each('no variable is set twice, and each has a text or a reference', (toggle) => {
  for (const manifest of workloads(toggle)) {
    const env: Json[] = container(manifest).env
    const names = env.map(({ name }) => name)
    assert.deepEqual(names, [...new Set(names)], manifest.metadata.name)
    for (const { name, value, valueFrom } of env)
      assert.equal(typeof (value ?? valueFrom?.secretKeyRef?.key ?? valueFrom?.fieldRef?.fieldPath), 'string', name)
  }
})

each(
  'the broker, its jobs and its migration know all variables that they get, and read them without a warning',
  (toggle) => {
    const known = new Set([...configTable().matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name!))
    for (const manifest of workloads(toggle)) {
      if (!['server.js', 'run.js', 'migrate.js'].some((name) => container(manifest).args?.[0].endsWith(name))) continue
      if (container(manifest).args[0].includes('/edge/')) continue
      const foreign = Object.keys(environment(manifest)).filter((name) => !known.has(name))
      assert.deepEqual(
        foreign,
        toggle === 'numbers' ? ['MALLOC_ARENA_MAX', 'NODE_EXTRA_CA_CERTS'] : ['MALLOC_ARENA_MAX'],
        manifest.metadata.name,
      )
      // With tokens this is always logged, since metrics with names of workloads are open by default.
      const warnings = loadConfig(lived(manifest)).warnings.filter(
        (line) => !line.startsWith('METRICS_WORKLOAD_LABELS: tokens are set'),
      )
      assert.deepEqual(warnings, [], manifest.metadata.name)
    }
  },
)

one('the defaults of the chart are those of the broker, except where a cluster needs others', () => {
  const config = configOf('default') as unknown as Record<string, unknown>
  const own = loadConfig({ NODE_ENV: 'production', DATABASE_URL: 'postgres://db/broker' }) as unknown as Record<
    string,
    unknown
  >
  const different = Object.keys(own).filter((key) => JSON.stringify(config[key]) !== JSON.stringify(own[key]))
  const { dbMigrationMaxRetries } = configOf('database-host')
  assert.deepEqual([config.dbMigrationMaxRetries, dbMigrationMaxRetries], [60, own.dbMigrationMaxRetries])
  const expected = [
    'adminListen',
    'chartVersion',
    'database',
    'databaseUrl',
    'dbMigrationMaxRetries',
    'isLoopbackOnly',
    'isSignatureDiscoveryEnabled',
    'kubeVersion',
    'listen',
    'memoryLimitMb',
    // The broker's is the interval, which the chart cannot tell from 0.
    'profileSnapshotTickBudgetSecs',
    'telemetryEndpoint',
  ]
  assert.deepEqual(different.sort(), expected)
  assert.deepEqual(config.adminListen, [{ host: '::', port: 9091 }])
  assert.deepEqual(
    [config.memoryLimitMb, config.telemetryEndpoint, config.chartVersion],
    [1024, 'https://version.kguardian.dev/v1/check', VERSION],
  )
  assert.match(String(config.kubeVersion), /^v1\.\d+\.\d+/)
})

one('seccomp values set the broker, and how often agents report', () => {
  const settings = (toggle: string) => {
    const { seccompProfileDir, seccompProfilesCacheTtlSecs, seccompNodeStaleSecs, seccompDenialMetricsIntervalSecs } =
      configOf(toggle)
    return [seccompProfileDir, seccompProfilesCacheTtlSecs, seccompNodeStaleSecs, seccompDenialMetricsIntervalSecs]
  }
  const retention = (toggle: string) => {
    const { seccompDenialsRetentionDays, seccompDenialsIntervalSecs, seccompDenialsBatchSize } = configOf(toggle)
    return [seccompDenialsRetentionDays, seccompDenialsIntervalSecs, seccompDenialsBatchSize]
  }
  assert.deepEqual(
    [settings('default'), retention('default')],
    [
      ['kguardian', 10, 900, 15],
      [30, 3600, 5000],
    ],
  )
  assert.deepEqual(
    [settings('seccomp'), retention('seccomp')],
    [
      ['operator/profiles', 0, 90, 5],
      [0, 60, 100],
    ],
  )
  assert.equal(settings('seccomp-no-window')[2], 0)
  const agent = (toggle: string) => {
    const env = environment(object(toggle, 'DaemonSet', 'controller'))
    const {
      SECCOMP_DISTRIBUTE,
      SECCOMP_DISTRIBUTE_INTERVAL_SECS,
      SECCOMP_DENIAL_CAPTURE,
      SECCOMP_DENIAL_INTERVAL_SECONDS,
    } = env
    return [
      SECCOMP_DISTRIBUTE,
      SECCOMP_DISTRIBUTE_INTERVAL_SECS,
      SECCOMP_DENIAL_CAPTURE,
      SECCOMP_DENIAL_INTERVAL_SECONDS,
    ]
  }
  assert.deepEqual(agent('seccomp'), ['true', '30', 'true', '10'])
  assert.deepEqual(agent('seccomp-no-window'), ['false', undefined, 'false', undefined])
})

one('runtime inventory values set the broker, and the mode of the agents', () => {
  const settings = (toggle: string) => {
    const config = configOf(toggle)
    const { runtimeInventoryRetentionDays, runtimeInventoryIntervalSecs, capabilityEvidenceWindowHours } = config
    return [runtimeInventoryRetentionDays, runtimeInventoryIntervalSecs, capabilityEvidenceWindowHours]
  }
  assert.deepEqual(
    [settings('default'), settings('runtime-inventory'), settings('jobs-off')],
    [
      [30, 3600, 168],
      [7, 7200, 720],
      [0, 3600, 168],
    ],
  )
  const { RUNTIME_INVENTORY, RUNTIME_INVENTORY_CAPABILITIES } = environment(
    object('runtime-inventory', 'DaemonSet', 'controller'),
  )
  assert.deepEqual([RUNTIME_INVENTORY, RUNTIME_INVENTORY_CAPABILITIES], ['exec', 'off'])
})

one('values of profiles reach the broker', () => {
  const settings = (toggle: string) => {
    const config = configOf(toggle)
    return [
      ...[config.profileSnapshotIntervalSecs, config.profileSnapshotTickBudgetSecs, config.profileSnapshotBatch],
      ...[
        config.profileVersionsMaxPerWorkload,
        config.profileVersionsRetentionDays,
        config.profileVersionsIntervalSecs,
      ],
    ]
  }
  assert.deepEqual(
    [settings('default'), settings('runtime-inventory')],
    [
      [300, 300, 200, 50, 90, 3600],
      [600, 0, 5000, 10, 30, 7200],
    ],
  )
})

one('the alert for missing heartbeats exists where agents send them', () => {
  const isAsked = (toggle: string) =>
    object(toggle, 'PrometheusRule', 'broker').spec.groups[0].rules.some(
      ({ alert }: Json) => alert === 'BrokerNoRuntimeHeartbeat',
    )
  assert.deepEqual(['runtime-inventory', 'prometheus-rule', 'seccomp'].map(isAsked), [true, false, false])
})

one('compute values set the broker, also where nothing is sampled', () => {
  const settings = (toggle: string) => {
    const config = configOf(toggle)
    return [
      [config.computeHistoryRetentionDays, config.computeHistoryMinuteHours, config.computeRetentionIntervalSecs],
      [config.computeStallSome, config.computeRunqP99Ms, config.computeMinRunqEvents],
      [config.computeThrottledRatio, config.computeThrottledRatioMax, config.computeBlameShare],
      [config.computeMemStallSome, config.computeRefaultPerMin],
    ]
  }
  const byDefault = [
    [7, 24, 600],
    [20, 20, 50],
    [0.25, 0.1, 0.4],
    [10, 1000],
  ]
  assert.deepEqual([settings('default'), settings('controller-bare')], [byDefault, byDefault])
  assert.deepEqual(settings('compute'), [
    [90, 1, 600],
    [35, 50, 1_000_000],
    [1, 0, 0.55],
    [100, 1_000_000_000],
  ])
  assert.equal(configOf('jobs-off').computeHistoryRetentionDays, 0)
  const written = (name: string) => environment(object('controller-bare', 'Deployment', 'broker'))[`COMPUTE_${name}`]
  assert.deepEqual(
    ['HISTORY_RETENTION_DAYS', 'THRESHOLD_THROTTLED_RATIO', 'THRESHOLD_MIN_RUNQ_EVENTS', 'ENABLED'].map(written),
    ['7', '0.25', '50', undefined],
  )
})

one('compute jobs in CronJobs have the settings, and without history only the fold is off', () => {
  const names = (toggle: string) =>
    ofKind(toggle, 'CronJob').map(({ metadata }) => metadata.name.replace(/^kguardian-/, ''))
  const compute = (toggle: string) =>
    names(toggle)
      .filter((name) => name.startsWith('compute-'))
      .sort()
  assert.deepEqual(
    [compute('compute'), compute('compute-off')],
    [['compute-fold', 'compute-retention'], ['compute-retention']],
  )
  const env = environment(object('compute', 'CronJob', 'compute-retention'))
  assert.deepEqual([env.COMPUTE_HISTORY_RETENTION_DAYS, env.COMPUTE_HISTORY_MINUTE_HOURS], ['90', '1'])
})

one('agents sample as the values say, and mount the cgroups where compute or denials need them', () => {
  const agent = (toggle: string) => {
    const env = environment(object(toggle, 'DaemonSet', 'controller'))
    return Object.entries(env).filter(([name]) => name.startsWith('COMPUTE_'))
  }
  assert.deepEqual(agent('compute'), [
    ['COMPUTE_ENABLED', 'true'],
    ['COMPUTE_SAMPLE_INTERVAL_SECS', '10'],
    ['COMPUTE_CONTENTION_ENABLED', 'true'],
    ['COMPUTE_MIN_RUNQ_LATENCY_US', '1000000'],
    ['COMPUTE_CGROUP_ROOT', '/sys/fs/cgroup'],
    ['COMPUTE_HOST_PROC', '/proc'],
  ])
  for (const toggle of ['compute-off', 'controller-bare'])
    assert.deepEqual(agent(toggle), [['COMPUTE_ENABLED', 'false']])
  const cgroups = (toggle: string) => {
    const manifest = object(toggle, 'DaemonSet', 'controller')
    const { spec } = podTemplate(manifest)
    const volumes = spec.volumes.filter(({ hostPath }: Json) => hostPath.path === '/sys/fs/cgroup')
    const mounts = container(manifest).volumeMounts.filter(({ mountPath }: Json) => mountPath === '/sys/fs/cgroup')
    assert.deepEqual(
      mounts.map(({ readOnly }: Json) => readOnly),
      volumes.map(() => true),
    )
    return volumes.length
  }
  // `compute-off` needs them for denials, `compute` only for compute.
  assert.deepEqual(['compute', 'compute-off', 'controller-bare'].map(cgroups), [1, 1, 0])
})

one('alerts for missing profiles or denials exist where agents report them, with a window from the interval', () => {
  const asked = (toggle: string) =>
    object(toggle, 'PrometheusRule', 'broker')
      .spec.groups[0].rules.filter(({ alert }: Json) =>
        ['BrokerNoSeccompReport', 'BrokerNoDenialReport'].includes(alert),
      )
      .map(({ alert, expr }: Json) => [alert, /\[(\d+s)\]/.exec(expr)![1]])
  assert.deepEqual(
    [asked('everything'), asked('compute'), asked('seccomp-slow'), asked('prometheus-rule')],
    [
      [
        ['BrokerNoSeccompReport', '900s'],
        ['BrokerNoDenialReport', '900s'],
      ],
      [['BrokerNoSeccompReport', '900s']],
      [
        ['BrokerNoSeccompReport', '10800s'],
        ['BrokerNoDenialReport', '1800s'],
      ],
      [],
    ],
  )
})

one('alerts for refused posts and missing results exist where the supply-chain component runs', () => {
  const asked = (toggle: string) =>
    object(toggle, 'PrometheusRule', 'broker')
      .spec.groups[0].rules.map(({ alert }: Json) => alert)
      .filter((alert: string) => /SupplyChain|Signature|Images/.test(alert))
  assert.deepEqual(
    [asked('everything'), asked('supplychain-alerts'), asked('prometheus-rule')],
    [
      [
        ...['BrokerSupplyChainPostsRefused', 'BrokerImagesNotScanned'],
        ...['BrokerSignatureResultsRefused', 'BrokerNoSignatureResult'],
      ],
      ['BrokerSupplyChainPostsRefused', 'BrokerImagesNotScanned'],
      [],
    ],
  )
})

one('the alert for missing samples exists where agents sample, the one for a late fold where there is a fold', () => {
  const alerts = (toggle: string): string[] =>
    object(toggle, 'PrometheusRule', 'broker').spec.groups[0].rules.map(({ alert }: Json) => alert)
  const asked = (toggle: string) =>
    ['BrokerNoComputeSample', 'BrokerComputeFoldBehind'].map((name) => alerts(toggle).includes(name))
  assert.deepEqual(
    [asked('compute'), asked('compute-off'), asked('prometheus-rule'), asked('jobs-off')],
    [
      [true, true],
      [false, false],
      [false, true],
      [false, false],
    ],
  )
})

one('large numbers are written out', () => {
  const config = configOf('numbers')
  const { trafficMaxRowsPerPod, auditQueueCapacity, auditEvalTimeoutMs, dbStatementTimeoutMs, dbPoolMaxSize } = config
  assert.deepEqual(
    [trafficMaxRowsPerPod, auditQueueCapacity, auditEvalTimeoutMs, dbStatementTimeoutMs, dbPoolMaxSize],
    [1_000_000_000, 1_000_000, 2_147_483_647, 2_147_483_647, 1000],
  )
  assert.deepEqual(config.adminListen, [{ host: '0.0.0.0', port: 9091 }])
})

one('without a memory limit Node chooses its heap, and neither variable nor alert names a limit', () => {
  for (const name of ['broker', 'frontend'])
    assert.deepEqual(container(object('no-limits', 'Deployment', name)).command, ['node', '--v8-pool-size=1'])
  assert.equal(environment(object('no-limits', 'Deployment', 'broker')).BROKER_MEMORY_LIMIT_MB, undefined)
  assert.ok(!JSON.stringify(ofKind('no-limits', 'PrometheusRule')).includes('BrokerMemoryHigh'))
})

each('probes use the admin port, and a rolling update stops a pod only after a new one is ready', (toggle) => {
  for (const name of ['broker', 'frontend']) {
    const manifest = find(toggle, 'Deployment', name)
    if (manifest === undefined) continue
    const { startupProbe, livenessProbe, readinessProbe, ports } = container(manifest)
    const asked = [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => [httpGet.port, httpGet.path])
    assert.deepEqual(asked, [
      ['admin', '/livez'],
      ['admin', '/livez'],
      ['admin', '/readyz'],
    ])
    const admin = ports.find((port: Json) => port.name === 'admin').containerPort
    assert.ok(environment(manifest).ADMIN_ADDR.endsWith(`:${admin}`))
    assert.deepEqual(manifest.spec.strategy, {
      type: 'RollingUpdate',
      rollingUpdate: { maxUnavailable: 0, maxSurge: 1 },
    })
    // The process ends by itself within 20 seconds.
    assert.equal(podTemplate(manifest).spec.terminationGracePeriodSeconds, 30)
  }
})

each('workloads, Services, budgets, policies and monitors select the intended pods', (toggle) => {
  const all = workloads(toggle)
  for (const { kind, spec, metadata } of all) {
    if (spec.selector)
      assert.ok(selects(spec.selector.matchLabels, spec.template.metadata.labels), `${kind} ${metadata.name}`)
  }
  for (const service of ofKind(toggle, 'Service')) {
    const behind = all.filter((manifest) => selects(service.spec.selector, labelsOf(manifest)))
    assert.equal(behind.length, 1, service.metadata.name)
    const ports = container(behind[0]!).ports.map((port: Json) => port.name)
    for (const { targetPort } of service.spec.ports)
      assert.ok(ports.includes(targetPort), `${service.metadata.name} ${targetPort}`)
  }
  for (const { metadata, spec } of [...ofKind(toggle, 'PodDisruptionBudget'), ...ofKind(toggle, 'NetworkPolicy')]) {
    const behind = all.filter((manifest) =>
      selects((spec.selector ?? spec.podSelector).matchLabels, labelsOf(manifest)),
    )
    assert.ok(metadata.name.endsWith('-jobs') ? behind.length > 0 : behind.length === 1, metadata.name)
  }
  for (const { metadata, spec } of ofKind(toggle, 'NetworkPolicy')) {
    const peers: Json[] = [...(spec.ingress ?? []), ...spec.egress].flatMap((rule: Json) => [
      ...(rule.from ?? []),
      ...(rule.to ?? []),
    ])
    for (const { podSelector } of peers.filter((peer) => peer.podSelector !== undefined)) {
      const behind = all.filter((manifest) => selects(podSelector.matchLabels, labelsOf(manifest)))
      const mayBeOff = ['jobs', 'backup'].includes(podSelector.matchLabels['app.kubernetes.io/component'])
      assert.ok(mayBeOff || behind.length === 1, metadata.name)
    }
  }
  for (const monitor of ofKind(toggle, 'ServiceMonitor')) {
    const behind = ofKind(toggle, 'Service').filter(({ metadata }) =>
      selects(monitor.spec.selector.matchLabels, metadata.labels),
    )
    assert.equal(behind.length, 1, monitor.metadata.name)
    assert.deepEqual(
      behind[0]!.spec.ports.map((port: Json) => port.name),
      [monitor.spec.endpoints[0].port],
    )
  }
})

each('every mount has a volume, every volume is mounted, and files in variables are in a volume', (toggle) => {
  for (const manifest of workloads(toggle)) {
    const mounts: Json[] = container(manifest).volumeMounts ?? []
    const volumes: Json[] = podTemplate(manifest).spec.volumes ?? []
    const claims =
      manifest.kind === 'StatefulSet' ? manifest.spec.volumeClaimTemplates.map((one: Json) => one.metadata.name) : []
    assert.deepEqual(
      mounts.map(({ name }) => name).sort(),
      [...volumes.map(({ name }) => name), ...claims].sort(),
      manifest.metadata.name,
    )
    for (const value of Object.values(environment(manifest)).filter((value) =>
      /^\/etc\/(broker|postgres)\//.test(value),
    )) {
      for (const file of value.split(',')) {
        const mount = mounts.find(({ mountPath }) => file.startsWith(`${mountPath}/`))
        const { secret, projected } = volumes.find(({ name }) => name === mount.name)
        const items: Json[] = secret?.items ?? projected.sources.flatMap((one: Json) => one.secret.items)
        assert.ok(
          items.some(({ path }) => file === `${mount.mountPath}/${path}`),
          file,
        )
      }
    }
  }
})

each('with external jobs each job that is on has a CronJob, otherwise there are none', (toggle) => {
  const config = configOf(toggle)
  const wanted =
    config.jobs === 'external' ? jobs.filter((job) => job.everySecs(config) !== null).map(({ name }) => name) : []
  assert.deepEqual(
    ofKind(toggle, 'CronJob').map((manifest) => container(manifest).args),
    wanted.map((name) => ['dist/jobs/run.js', name]),
  )
  for (const manifest of ofKind(toggle, 'CronJob')) {
    const {
      schedule,
      timeZone,
      concurrencyPolicy,
      startingDeadlineSeconds,
      successfulJobsHistoryLimit,
      failedJobsHistoryLimit,
      jobTemplate,
    } = manifest.spec
    assert.deepEqual(
      [timeZone, concurrencyPolicy, startingDeadlineSeconds, successfulJobsHistoryLimit, failedJobsHistoryLimit],
      ['Etc/UTC', 'Forbid', 300, 1, 3],
    )
    assert.deepEqual([jobTemplate.spec.activeDeadlineSeconds, jobTemplate.spec.backoffLimit], [3000, 0])
    assert.equal(podTemplate(manifest).spec.restartPolicy, 'Never')
    assert.deepEqual(container(manifest).command, ['node', '--v8-pool-size=1'])
    // Throws for an invalid schedule.
    new Cron(schedule, { mode: '5-part', paused: true })
  }
})

one('schedules run as often as the jobs in the broker, but no more than once a minute', () => {
  const config = configOf('jobs-external')
  for (const manifest of ofKind('jobs-external', 'CronJob')) {
    const job = jobs.find(({ name }) => name === container(manifest).name)!
    const [first, second] = new Cron(manifest.spec.schedule, {
      mode: '5-part',
      paused: true,
      timezone: 'UTC',
    }).nextRuns(2)
    const secs = (second!.getTime() - first!.getTime()) / 1000
    assert.equal(secs, Math.max(60, job.everySecs(config)!), job.name)
  }
})

one('minute and hour differ by release, the minute also by job', () => {
  const schedules = (toggle: string) => ofKind(toggle, 'CronJob').map(({ spec }) => spec.schedule)
  assert.notDeepEqual(schedules('long-name'), schedules('jobs-external'))
  const hourly = schedules('jobs-external').filter((schedule: string) => /^\d+ \* /.test(schedule))
  assert.ok(new Set(hourly).size > 1, hourly.join(', '))
  const daily = (toggle: string) => object(toggle, 'CronJob', 'version-check').spec.schedule.split(' ')
  for (const field of [0, 1]) assert.notEqual(daily('long-name')[field], daily('jobs-external')[field])
})

one('a schedule in the values replaces the default one', () => {
  const schedule = (toggle: string) => object(toggle, 'CronJob', 'traffic-retention').spec.schedule
  assert.equal(schedule('jobs-external-database'), '30 3 * * 0')
  assert.match(schedule('jobs-external'), /^\d+ \* \* \* \*$/)
})

each('an external database is migrated by a hook, a trial database by the broker', (toggle) => {
  const migrations = ofKind(toggle, 'Job').filter(({ metadata }) => metadata.name.endsWith('-migration'))
  const isTrial = ofKind(toggle, 'StatefulSet').length === 1
  assert.equal(migrations.length, isTrial ? 0 : 1)
  assert.equal(configOf(toggle).migrateOnStart, isTrial)
  for (const migration of migrations) {
    assert.equal(migration.metadata.annotations!['helm.sh/hook'], 'pre-install,pre-upgrade')
    assert.deepEqual(container(migration).args, ['dist/sql/migrate.js'])
    const { serviceAccountName, volumes = [] } = podTemplate(migration).spec
    // No object of the release exists yet.
    assert.equal(serviceAccountName, undefined)
    const own = rendered(toggle).map(({ metadata }) => metadata.name)
    for (const { secret } of volumes) assert.ok(!own.includes(secret.secretName))
  }
})

const secretKey = (name: string, key: string, optional?: boolean) => ({
  secretKeyRef: { name, key, ...(optional === undefined ? {} : { optional }) },
})
const files = (key: string) => `/etc/broker/tokens/${key},/etc/broker/tokens/${key}-next`

/** The keys of the secret that a pod mounts as files, and whether each is optional. */
function mountedKeys(manifest: Manifest): Record<string, boolean> {
  const { spec } = podTemplate(manifest)
  const volume = spec.volumes?.find(({ name }: Json) => name === 'tokens')
  if (volume === undefined) return {}
  const [mount] = container(manifest).volumeMounts.filter(({ name }: Json) => name === 'tokens')
  assert.deepEqual(mount, { name: 'tokens', mountPath: '/etc/broker/tokens', readOnly: true })
  return Object.fromEntries(
    volume.projected.sources.map(({ secret }: Json) => {
      assert.equal(secret.name, 'broker-tokens')
      const [{ key, path }] = secret.items
      assert.equal(path, key)
      return [key, secret.optional ?? false]
    }),
  )
}
const authOf = (env: Record<string, Json>) =>
  Object.fromEntries(Object.entries(env).filter(([name]) => /TOKEN/.test(name)))

one('without authentication no pod gets a token', () => {
  for (const [toggle, kind, name] of [
    ['default', 'Deployment', 'broker'],
    ['frontend', 'Deployment', 'frontend'],
    ['controller', 'DaemonSet', 'controller'],
  ] as const)
    assert.deepEqual(authOf(environment(object(toggle, kind, name))), {})
})

one(
  'with scoped tokens the broker requires those for reading and ingest; other pods get only the one they need',
  () => {
    const broker = object('frontend-scoped', 'Deployment', 'broker')
    assert.deepEqual(authOf(environment(broker)), {
      BROKER_TOKEN_READ_FILE: files('read'),
      BROKER_TOKEN_INGEST_FILE: files('ingest'),
      BROKER_TOKEN_SUPPLYCHAIN: secretKey('broker-tokens', 'supplychain', true),
      BROKER_TOKEN_ADMIN: secretKey('broker-tokens', 'admin', true),
    })
    assert.deepEqual(mountedKeys(broker), { read: false, 'read-next': true, ingest: false, 'ingest-next': true })
    const frontend = object('frontend-scoped', 'Deployment', 'frontend')
    assert.deepEqual(authOf(environment(frontend)), { BROKER_TOKEN_READ_FILE: '/etc/broker/tokens/read' })
    assert.deepEqual(mountedKeys(frontend), { read: false, 'read-next': true })
    assert.deepEqual(authOf(environment(object('controller-custom', 'DaemonSet', 'controller'))), {
      BROKER_AUTH_TOKEN: secretKey('broker-tokens', 'ingest', false),
    })
  },
)

one('the edge proxy allows the host names of its Service and those in the values', () => {
  const name = 'kguardian-frontend'
  const own = [name, `${name}.telemetry`, `${name}.telemetry.svc`, `${name}.telemetry.svc.cluster.local`]
  assert.deepEqual(environment(object('frontend', 'Deployment', 'frontend')).ALLOWED_HOSTS.split(','), own)
  assert.deepEqual(environment(object('frontend-scoped', 'Deployment', 'frontend')).ALLOWED_HOSTS.split(','), [
    ...own,
    'ui.example.com',
  ])
  // Host names of an Ingress or HTTPRoute are allowed too.
  assert.ok(
    environment(object('everything', 'Deployment', 'frontend'))
      .ALLOWED_HOSTS.split(',')
      .includes('ui.example.com'),
  )
})

one('the broker listens on all addresses, with tokens or without', () => {
  for (const toggle of ['default', 'auth-scoped'])
    assert.equal(environment(object(toggle, 'Deployment', 'broker')).LISTEN_ADDR, '[::]:9090')
})

one('the supply-chain component gets a token that the broker then requires', () => {
  for (const toggle of ['supplychain', 'supplychain-full', 'supplychain-signatures', 'supplychain-no-rbac']) {
    const token = secretKey('broker-tokens', 'supplychain', false)
    assert.deepEqual(authOf(environment(object(toggle, 'Deployment', 'supplychain'))), { BROKER_AUTH_TOKEN: token })
    const broker = object(toggle, 'Deployment', 'broker')
    assert.equal(environment(broker).BROKER_TOKEN_SUPPLYCHAIN_FILE, files('supplychain'))
    assert.deepEqual([mountedKeys(broker).supplychain, mountedKeys(broker)['supplychain-next']], [false, true])
  }
})

one('with a shared token all pods have it, the edge proxy only if the values allow it', () => {
  const token = secretKey('broker-tokens', 'token', false)
  assert.deepEqual(authOf(environment(object('auth-shared', 'Deployment', 'broker'))), {
    BROKER_AUTH_TOKEN_FILE: files('token'),
  })
  assert.deepEqual(mountedKeys(object('auth-shared', 'Deployment', 'broker')), { token: false, 'token-next': true })
  assert.deepEqual(authOf(environment(object('frontend-shared', 'Deployment', 'frontend'))), {
    BROKER_AUTH_TOKEN_FILE: '/etc/broker/tokens/token',
    ALLOW_SHARED_TOKEN: 'true',
  })
  assert.deepEqual(authOf(environment(object('controller-bare', 'DaemonSet', 'controller'))), {
    BROKER_AUTH_TOKEN: token,
  })
})

each('jobs and migration get no token', (toggle) => {
  for (const manifest of [...ofKind(toggle, 'CronJob'), ...ofKind(toggle, 'Job')])
    assert.deepEqual(authOf(environment(manifest)), {})
})

const databaseOf = (manifest: Manifest) =>
  Object.fromEntries(Object.entries(environment(manifest)).filter(([name]) => /^(PG|DATABASE)/.test(name)))

one('the password is a file apart from the address, or the whole address is in the secret', () => {
  assert.deepEqual(databaseOf(object('database-host', 'Deployment', 'broker')), {
    PGHOST: 'db.example.internal',
    PGPORT: '6432',
    PGUSER: 'broker',
    PGDATABASE: 'broker',
    DATABASE_PASSWORD_FILE: '/etc/broker/database/password',
    PGSSLMODE: 'verify-full',
    PGSSLROOTCERT: '/etc/broker/database-ca/ca.crt',
    PGSSLCERT: '/etc/broker/database-client/tls.crt',
    PGSSLKEY: '/etc/broker/database-client/tls.key',
  })
  assert.deepEqual(databaseOf(object('database-url', 'Deployment', 'broker')), {
    DATABASE_URL: secretKey('broker-database', 'url'),
    PGSSLMODE: 'prefer',
  })
  assert.deepEqual(databaseOf(object('default', 'Deployment', 'broker')), {
    PGHOST: 'kguardian-postgres',
    PGUSER: 'broker',
    PGDATABASE: 'broker',
    DATABASE_PASSWORD_FILE: '/etc/broker/database/password',
  })
  assert.ok(find('default', 'Service', 'postgres'))
})

each('all programs use the same database', (toggle) => {
  const broker = object(toggle, 'Deployment', 'broker')
  for (const manifest of [...ofKind(toggle, 'CronJob'), ...ofKind(toggle, 'Job')])
    assert.deepEqual(databaseOf(manifest), databaseOf(broker))
})

one('the password of the trial database is random and kept after uninstall, unless a secret is given', () => {
  const passwords = ['default', 'frontend'].map((toggle) => {
    const { metadata, data } = object(toggle, 'Secret', 'postgres')
    assert.equal(metadata.annotations!['helm.sh/resource-policy'], 'keep')
    return Buffer.from(data.password, 'base64').toString()
  })
  assert.notEqual(passwords[0], passwords[1])
  for (const password of passwords) assert.match(password, /^[A-Za-z0-9]{32}$/)
  assert.deepEqual(ofKind('postgres-secret', 'Secret'), [])
  for (const [kind, name] of [
    ['Deployment', 'broker'],
    ['StatefulSet', 'postgres'],
  ] as const) {
    const secrets = podTemplate(object('postgres-secret', kind, name)).spec.volumes.flatMap(
      (volume: Json) => volume.secret?.secretName ?? [],
    )
    assert.deepEqual(secrets, ['broker-postgres-password'])
  }
})

one('the values set the evaluator and the version check, and the broker gets the list of features', () => {
  assert.equal(configOf('default').evaluatorUrl, null)
  assert.equal(configOf('evaluator').evaluatorUrl, 'http://evaluator.audit.svc:8082')
  assert.deepEqual([configOf('default').telemetryEnabled, configOf('telemetry-off').telemetryEnabled], [true, false])
  const features = ['default', 'evaluator', 'network-policy', 'network-policy-narrow'].map(
    (toggle) => configOf(toggle).features,
  )
  assert.deepEqual(features, ['none', 'audit', 'netpol', 'audit,netpol'])
})

const controllerEnv = {
  CURRENT_NODE: { fieldRef: { fieldPath: 'spec.nodeName' } },
  API_ENDPOINT: 'http://kguardian-broker.telemetry.svc:9090',
  EXCLUDED_NAMESPACES: 'kube-system',
  SYSCALL_CAPTURE_LEVEL: 'full',
  SECCOMP_DISTRIBUTE: 'true',
  SECCOMP_ROOT: '/var/lib/kubelet/seccomp',
  SECCOMP_DISTRIBUTE_INTERVAL_SECS: '30',
  SECCOMP_DENIAL_CAPTURE: 'true',
  SECCOMP_DENIAL_INTERVAL_SECONDS: '10',
  RUNTIME_INVENTORY: 'off',
  RUNTIME_INVENTORY_CAPABILITIES: 'off',
  STARTUP_CAPTURE_KNOWN_POD_TTL_SECONDS: '3600',
  STARTUP_CAPTURE_PENDING_TTL_SECONDS: '600',
  COMPUTE_ENABLED: 'true',
  COMPUTE_SAMPLE_INTERVAL_SECS: '5',
  COMPUTE_CONTENTION_ENABLED: 'false',
  COMPUTE_MIN_RUNQ_LATENCY_US: '100',
  COMPUTE_CGROUP_ROOT: '/sys/fs/cgroup',
  COMPUTE_HOST_PROC: '/proc',
}
const mountsOf = (toggle: string): string[] =>
  container(object(toggle, 'DaemonSet', 'controller')).volumeMounts.map(({ mountPath }: Json) => mountPath)

one('the controller has the environment that its interface names', () => {
  assert.deepEqual(environment(object('controller', 'DaemonSet', 'controller')), controllerEnv)
  assert.ok(['/sys/fs/cgroup', '/var/lib/kubelet/seccomp'].every((path) => mountsOf('controller').includes(path)))
})

one('the controller gets neither variables nor folders of features that are off', () => {
  assert.deepEqual(environment(object('controller-bare', 'DaemonSet', 'controller')), {
    CURRENT_NODE: controllerEnv.CURRENT_NODE,
    API_ENDPOINT: controllerEnv.API_ENDPOINT,
    BROKER_AUTH_TOKEN: secretKey('broker-tokens', 'token', false),
    EXCLUDED_NAMESPACES: 'kube-system',
    SYSCALL_CAPTURE_LEVEL: 'full',
    SECCOMP_DISTRIBUTE: 'false',
    SECCOMP_DENIAL_CAPTURE: 'false',
    RUNTIME_INVENTORY: 'off',
    RUNTIME_INVENTORY_CAPABILITIES: 'off',
    STARTUP_CAPTURE_KNOWN_POD_TTL_SECONDS: '3600',
    STARTUP_CAPTURE_PENDING_TTL_SECONDS: '600',
    COMPUTE_ENABLED: 'false',
  })
  assert.ok(!['/sys/fs/cgroup', '/var/lib/kubelet/seccomp'].some((path) => mountsOf('controller-bare').includes(path)))
  assert.deepEqual(ofKind('controller-bare', 'ClusterRole'), [])
})

one('values of the controller reach its environment', () => {
  const env = environment(object('controller-custom', 'DaemonSet', 'controller'))
  assert.deepEqual(
    [
      env.EXCLUDED_NAMESPACES,
      env.SYSCALL_CAPTURE_LEVEL,
      env.SYSCALL_CUSTOM_LIST,
      env.RUNTIME_INVENTORY,
      env.RUNTIME_INVENTORY_CAPABILITIES,
    ],
    ['kube-system,telemetry', 'custom', 'read,write', 'full', 'on'],
  )
  assert.equal(env.COMPUTE_CONTENTION_ENABLED, 'true')
})

const supplychainEnv = {
  LISTEN_ADDR: ':8083',
  BROKER_URL: 'http://kguardian-broker.telemetry.svc:9090',
  BROKER_INGEST_ENABLED: 'true',
  BROKER_AUTH_TOKEN: secretKey('broker-tokens', 'supplychain', false),
  TRIVY_OPERATOR_ENABLED: 'true',
  REGISTRY_SBOM_ENABLED: 'false',
  REGISTRY_LOOKUP_ENABLED: 'false',
  ATTESTATION_ENABLED: 'false',
}

one('the supply-chain component has the environment of its interface, with requests to registries off', () => {
  assert.deepEqual(environment(object('supplychain', 'Deployment', 'supplychain')), supplychainEnv)
  assert.equal(find('default', 'Deployment', 'supplychain'), undefined)
})

one('values of the supply-chain component reach its environment', () => {
  assert.deepEqual(environment(object('supplychain-full', 'Deployment', 'supplychain')), {
    ...supplychainEnv,
    REGISTRY_SBOM_ENABLED: 'true',
    REGISTRY_LOOKUP_ENABLED: 'true',
    ATTESTATION_ENABLED: 'true',
    ATTESTATION_INTERVAL: '30m',
  })
  assert.deepEqual(environment(object('supplychain-signatures', 'Deployment', 'supplychain')), {
    ...supplychainEnv,
    TRIVY_OPERATOR_ENABLED: 'false',
    ATTESTATION_ENABLED: 'true',
  })
})

one('the supply-chain component is one pod, with probes on the port that it listens on', () => {
  const manifest = object('supplychain', 'Deployment', 'supplychain')
  assert.deepEqual([manifest.spec.replicas, manifest.spec.strategy], [1, { type: 'Recreate' }])
  const { image, args, startupProbe, livenessProbe, readinessProbe, ports } = container(manifest)
  assert.deepEqual([image, args], ['registry.example/supplychain:v1', ['serve']])
  const probes = [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => [httpGet.port, httpGet.path])
  assert.deepEqual(probes, [
    ['http', '/healthz'],
    ['http', '/healthz'],
    ['http', '/readyz'],
  ])
  assert.deepEqual(ports, [{ name: 'http', containerPort: Number(supplychainEnv.LISTEN_ADDR.slice(1)) }])
})

one('the supply-chain component may only read reports of the scanner operator, and only where it does so', () => {
  const { rules } = ofKind('supplychain', 'ClusterRole')[0]!
  assert.deepEqual(rules, [
    {
      apiGroups: ['aquasecurity.github.io'],
      resources: ['vulnerabilityreports', 'sbomreports'],
      verbs: ['get', 'list', 'watch'],
    },
  ])
  const [binding] = ofKind('supplychain', 'ClusterRoleBinding')
  assert.deepEqual(binding!.subjects, [
    { kind: 'ServiceAccount', name: 'kguardian-supplychain', namespace: 'telemetry' },
  ])
  assert.deepEqual(
    [binding!.roleRef.name, ofKind('supplychain', 'ClusterRole')[0]!.metadata.name],
    Array(2).fill('telemetry-kguardian-supplychain'),
  )
  for (const toggle of ['supplychain-signatures', 'supplychain-no-rbac'])
    assert.equal(ofKind(toggle, 'ClusterRole').length + ofKind(toggle, 'ClusterRoleBinding').length, 0)
  assert.equal(
    podTemplate(object('supplychain-no-rbac', 'Deployment', 'supplychain')).spec.serviceAccountName,
    'kguardian-supplychain',
  )
})

one('values of the supply chain reach the broker', () => {
  const config = configOf('supplychain-full')
  assert.deepEqual(
    [
      config.wireNames,
      config.annotationPrefix,
      config.metricsWorkloadLabels,
      config.supplyChainMaxInflatedBytes,
      config.supplyChainIntervalSecs,
      config.supplyChainRetentionDays,
      config.supplyChainUnlinkedGraceHours,
      config.sbomPageTtlSecs,
      config.supplyChainBatchSize,
      config.inUseWindowHours,
      config.tierEpss,
      config.isUnknownExposed,
      config.isSignatureDiscoveryEnabled,
    ],
    ['kguardian', 'policy.example.com', 'admin', 33_554_432, 1800, 0, 0, 7200, 1000, 72, 0.5, false, true],
  )
})

one('the edge proxy gets the address of the broker, its ports and its path', () => {
  const env = environment(object('frontend', 'Deployment', 'frontend'))
  assert.deepEqual(
    [env.BROKER_URL, env.BASE_PATH, env.ADMIN_ADDR],
    ['http://kguardian-broker.telemetry.svc:9090', '/api', '[::]:8081'],
  )
  assert.deepEqual(container(object('frontend', 'Deployment', 'frontend')).args, [
    'dist/wrangler-free-deploy/edge/server.js',
  ])
})

one('with an autoscaler the Deployment sets no replicas', () => {
  assert.equal(object('autoscaling', 'Deployment', 'broker').spec.replicas, undefined)
  const { scaleTargetRef, minReplicas, maxReplicas } = object('autoscaling', 'HorizontalPodAutoscaler', 'broker').spec
  assert.deepEqual(
    [scaleTargetRef.kind, scaleTargetRef.name, minReplicas, maxReplicas],
    ['Deployment', 'kguardian-broker', 2, 6],
  )
  assert.equal(object('default', 'Deployment', 'broker').spec.replicas, 2)
})

one('placement, labels and annotations of pods are those of the values, and selectors stay', () => {
  for (const manifest of workloads('placement')) {
    const { metadata, spec } = podTemplate(manifest)
    assert.equal(metadata.labels.team, 'platform')
    assert.notEqual(metadata.labels['app.kubernetes.io/component'], 'somebody-else')
    assert.deepEqual(
      [metadata.annotations['example.com/note'], spec.nodeSelector.disk, spec.tolerations[0].key],
      ['yes', 'fast', 'dedicated'],
    )
    assert.deepEqual([spec.imagePullSecrets[0].name, spec.priorityClassName], ['registry', 'system-cluster-critical'])
    assert.ok(spec.affinity.nodeAffinity)
    if (manifest.kind !== 'StatefulSet')
      assert.match(container(manifest).image, /^registry\.example\/broker@sha256:[0-9a-f]{64}$/)
  }
})

one('brokers are spread over nodes and zones', () => {
  const constraints = podTemplate(object('default', 'Deployment', 'broker')).spec.topologySpreadConstraints
  const labels = labelsOf(object('default', 'Deployment', 'broker'))
  assert.deepEqual(
    constraints.map(({ topologyKey }: Json) => topologyKey),
    ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'],
  )
  for (const { labelSelector } of constraints) assert.ok(selects(labelSelector.matchLabels, labels))
  assert.equal(podTemplate(object('no-budgets', 'Deployment', 'broker')).spec.topologySpreadConstraints, undefined)
  assert.deepEqual(
    [ofKind('no-budgets', 'PodDisruptionBudget').length, ofKind('frontend', 'PodDisruptionBudget').length],
    [0, 2],
  )
})

/** The ports that a policy opens, with `/UDP` for UDP, each with the number of peers or `all`. */
const rules = (list: Json[]) =>
  list.flatMap(({ ports, to, from }) =>
    ports.map(
      ({ port, protocol }: Json) => `${port}${protocol === 'UDP' ? '/UDP' : ''}:${(to ?? from)?.length ?? 'all'}`,
    ),
  )

/** Components that are named as peers. */
const named = (list: Json[]): string[] =>
  list.flatMap(({ to, from }) =>
    (to ?? from ?? []).flatMap((peer: Json) => peer.podSelector?.matchLabels['app.kubernetes.io/component'] ?? []),
  )

one('network policies name our own pods as peers', () => {
  const policy = (toggle: string, name: string) => object(toggle, 'NetworkPolicy', name).spec
  assert.deepEqual(named(policy('network-policy', 'broker').egress), ['postgres'])
  assert.deepEqual(named(policy('network-policy', 'postgres').ingress), ['broker', 'jobs', 'backup'])
  assert.deepEqual(named(policy('network-policy-narrow', 'broker').ingress), ['frontend', 'test'])
  assert.deepEqual(named(policy('network-policy-narrow', 'frontend').egress), ['broker'])
})

each('every network policy covers ingress and egress', (toggle) => {
  for (const { metadata, spec } of ofKind(toggle, 'NetworkPolicy'))
    assert.deepEqual(spec.policyTypes, ['Ingress', 'Egress'], metadata.name)
})

one(
  'by default a network policy opens the API to all, and lets the broker reach DNS, its database and the version service',
  () => {
    const { ingress, egress, policyTypes } = object('network-policy', 'NetworkPolicy', 'broker').spec
    assert.deepEqual(policyTypes, ['Ingress', 'Egress'])
    assert.deepEqual(
      [rules(ingress), rules(egress)],
      [
        ['api:all', 'admin:all'],
        ['53/UDP:all', '53:all', '5432:1', '443:all'],
      ],
    )
    const postgres = object('network-policy', 'NetworkPolicy', 'postgres').spec
    assert.deepEqual([rules(postgres.ingress), postgres.egress], [['postgres:3'], []])
    assert.deepEqual(ofKind('network-policy', 'NetworkPolicy').length, 3)
    assert.deepEqual(ofKind('default', 'NetworkPolicy'), [])
  },
)

one('a narrow network policy names its peers, and lets the edge proxy in and the jobs out', () => {
  const policy = (name: string) => object('network-policy-narrow', 'NetworkPolicy', name).spec
  assert.deepEqual(rules(policy('broker').ingress), ['api:3', 'admin:1'])
  assert.deepEqual(rules(policy('broker').egress), ['53/UDP:all', '53:all', '6432:1', '8082:all', '443:all'])
  assert.deepEqual(
    [policy('jobs').ingress, rules(policy('jobs').egress)],
    [undefined, ['53/UDP:all', '53:all', '6432:1', '443:all']],
  )
  assert.deepEqual(
    [policy('migration').ingress, rules(policy('migration').egress)],
    [undefined, ['53/UDP:all', '53:all', '6432:1']],
  )
  assert.deepEqual(
    [rules(policy('frontend').ingress), rules(policy('frontend').egress)],
    [
      ['http:2', 'admin:1'],
      ['53/UDP:all', '53:all', '9090:1'],
    ],
  )
})

one(
  'a network policy lets the supply-chain component reach the broker, and the Kubernetes API and registries at the set ports',
  () => {
    const policy = (toggle: string, name: string) => object(toggle, 'NetworkPolicy', name).spec
    assert.deepEqual(named(policy('supplychain-full', 'broker').ingress), ['frontend', 'supplychain', 'test'])
    assert.deepEqual(named(policy('supplychain-full', 'supplychain').egress), ['broker'])
    const { ingress, egress, policyTypes } = policy('supplychain-full', 'supplychain')
    assert.deepEqual(policyTypes, ['Ingress', 'Egress'])
    assert.deepEqual(
      [rules(ingress), rules(egress)],
      [['http:1'], ['53/UDP:all', '53:all', '9090:1', '443:all', '5000:all', '6443:all']],
    )
    const bare = policy('supplychain-signatures', 'supplychain')
    assert.deepEqual([rules(bare.ingress), rules(bare.egress)], [['http:all'], ['53/UDP:all', '53:all', '9090:1']])
  },
)

/** Names of the metrics in an expression. */
const asked = (expression: string) =>
  [...expression.matchAll(/\b((?:broker|edge|svc|kguardian|nodejs|process)_\w+)(?=\{)/g)].map(([, name]) => name!)

/** The name and labels of the counter of denials, which is not in the registry. */
function writtenBy(wireNames: WireNames): [name: string, labels: string[]] {
  const series = new DenialSeries(wireNames)
  series.add({
    workload_namespace: 'shop',
    workload_kind: 'Deployment',
    workload_name: 'web',
    action: 'SCMP_ACT_ERRNO',
    denials: 1,
  })
  const [, name, list] = /^(\w+)\{(.*)\} 1$/m.exec(series.text())!
  return [name!, [...list!.matchAll(/(\w+)="/g)].map(([, label]) => label!)]
}

one('alerts and dashboard use existing metrics with labels that these have', async () => {
  const labels = new Map<string, string[]>()
  for (const wireNames of WIRE_NAMES) {
    const { registry } = createMetrics(wireNames)
    for (const { name } of await registry.getMetricsAsJSON())
      labels.set(name, (registry.getSingleMetric(name) as unknown as { labelNames: string[] }).labelNames)
    const [name, own] = writtenBy(wireNames)
    labels.set(name, own)
  }
  const edge = createEdgeMetrics().registry
  for (const { name } of await edge.getMetricsAsJSON())
    labels.set(name, (edge.getSingleMetric(name) as unknown as { labelNames: string[] }).labelNames)
  const rulesOf = ['prometheus-rule', 'runtime-inventory', 'compute', 'everything'].flatMap(
    (toggle) => object(toggle, 'PrometheusRule', 'broker').spec.groups[0].rules,
  )
  const dashboard = JSON.parse(object('dashboard', 'ConfigMap', 'dashboard').data['cluster-telemetry-broker.json'])
  const panels: Json[] = dashboard.panels.filter(({ type }: Json) => type !== 'row')
  const expressions: string[] = [
    ...rulesOf.map(({ expr }: Json) => expr),
    ...panels.flatMap(({ targets }) => targets.map(({ expr }: Json) => expr)),
  ]
  const served = declaredRoutes(routes.flatMap((one) => one.routes))
  const target = ['namespace', 'job', 'pod', 'le', 'exported_job']
  for (const expression of expressions) {
    const names = asked(expression).map((name) => name.replace(/_(bucket|count|sum)$/, ''))
    assert.ok(names.length > 0 || expression.startsWith('sum(up{'), expression)
    for (const name of names) assert.ok(labels.has(name), `${name} in ${expression}`)
    const used = [
      ...expression.matchAll(/[{,]\s*(\w+)(?:=~|!~|!=|=)"/g),
      ...expression.matchAll(/ by \(([^)]*)\)/g),
    ].flatMap(([, list]) => list!.split(/,\s*/))
    const known = [...target, ...names.flatMap((name) => labels.get(name)!)]
    for (const label of used) assert.ok(known.includes(label), `${label} in ${expression}`)
    for (const [, method, list] of expression.matchAll(/method="(\w+)",route=~?"([^"]+)"/g))
      for (const route of list!.split('|')) assert.ok(served.has(`${method} ${route}`), route)
    // A scraped series already has the label `job`, so the one of our jobs is renamed.
    if (names.some((name) => labels.get(name)!.includes('job'))) assert.match(expression, /exported_job/)
  }
  const own = (name: string) => /^(broker|edge|svc|kguardian)_/.test(name)
  const missing = [...labels.keys()].filter((name) => own(name) && !expressions.some((one) => one.includes(name)))
  assert.deepEqual(missing.sort(), ['broker_audit_enabled', 'broker_read_budget_kib_total'])
})

one('an alert uses the name of the metric that the broker writes, the dashboard both names', () => {
  const refused = (toggle: string) =>
    object(toggle, 'PrometheusRule', 'broker').spec.groups[0].rules.find(
      ({ alert }: Json) => alert === 'BrokerSbomsRefused',
    ).expr
  assert.match(refused('prometheus-rule'), /^sum\(rate\(svc_supplychain_staged_sets_refused_total\{/)
  assert.match(refused('supplychain-full'), /^sum\(rate\(kguardian_supplychain_staged_sets_refused_total\{/)
  const { data } = object('dashboard', 'ConfigMap', 'dashboard')
  const names = [
    ...data['cluster-telemetry-broker.json'].matchAll(/\w+(?=_supplychain_staged_sets_refused_total)/g),
  ].map(([name]) => name)
  assert.deepEqual(names, ['svc', 'kguardian'])
})

one('every alert has a severity, a summary and a runbook', () => {
  const alerts: Json[] = object('everything', 'PrometheusRule', 'broker').spec.groups[0].rules
  assert.ok(alerts.length > 25)
  for (const { alert, labels, annotations, for: lasting } of alerts) {
    assert.match(alert, /^(Broker|Frontend)[A-Z]\w+$/)
    assert.match(labels.severity, /^(critical|warning)$/)
    assert.match(annotations.summary, /\.$/, alert)
    assert.ok(annotations.runbook.length > 60, alert)
    assert.match(lasting, /^\d+m$/)
  }
  assert.equal(new Set(alerts.map(({ alert }) => alert)).size, alerts.length)
})

one('values named in a runbook exist', () => {
  const text = JSON.stringify(object('everything', 'PrometheusRule', 'broker'))
  const groups = Object.keys(readValues()).join('|')
  const named = [...text.matchAll(new RegExp(`\\b((?:${groups})\\.[a-z]\\w+(?:\\.\\w+)*)`, 'g'))].map(
    ([, path]) => path!,
  )
  assert.ok(named.length > 15)
  for (const path of named) assert.notEqual(at(readValues(), path), undefined, path)
})

one('a job is late after three times its interval, at least 15 minutes, and only if it is on', () => {
  const overdue = (toggle: string) => {
    const { expr } = object(toggle, 'PrometheusRule', 'broker').spec.groups[0].rules.find(
      ({ alert }: Json) => alert === 'BrokerJobOverdue',
    )
    return Object.fromEntries(
      [...expr.matchAll(/exported_job="([\w-]+)"\}\) > (\d+)/g)].map(([, name, seconds]) => [name, Number(seconds)]),
    )
  }
  assert.deepEqual(overdue('prometheus-rule'), {
    'late-resolve': 900,
    'stale-sweep': 900,
    'audit-retention': 10_800,
    'dead-pod-retention': 10_800,
    'traffic-retention': 10_800,
    'flow-edges': 900,
    'image-inventory-retention': 10_800,
    'supply-chain-refresh': 900,
    'attestation-retention': 10_800,
    'seccomp-denial-retention': 10_800,
    'runtime-retention': 10_800,
    'compute-retention': 1800,
    'compute-fold': 1800,
    'profile-snapshots': 900,
    'profile-retention': 10_800,
  })
  // Data that is kept for ever is still linked, counted and attributed; results of images that are gone are deleted.
  assert.deepEqual(overdue('jobs-off'), {
    'dead-pod-retention': 10_800,
    'flow-edges': 900,
    'supply-chain-refresh': 900,
    'attestation-retention': 10_800,
    'seccomp-denial-retention': 10_800,
    'compute-retention': 1800,
    'profile-snapshots': 900,
  })
  assert.equal(overdue('supplychain-full')['supply-chain-refresh'], 5400)
  assert.equal(overdue('runtime-inventory')['runtime-retention'], 21_600)
})

one('the memory alert is at nine tenths of the limit', () => {
  const alerts: Json[] = object('prometheus-rule', 'PrometheusRule', 'broker').spec.groups[0].rules
  const { expr } = alerts.find(({ alert }) => alert === 'BrokerMemoryHigh')
  assert.match(expr, new RegExp(` > ${Math.floor(1024 * MIB * 0.9)}$`))
})
