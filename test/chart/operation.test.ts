/** Operation of the chart: images, connections, security contexts, ingress, helm test, backups. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { load } from 'js-yaml'
import { jobs } from '../../jobs/index.ts'
import { CHART, readValues } from '../../scripts/chart-values.ts'
import { notes, refusal, render, skip, type Values } from '../support/helm.ts'
import { container, environment, type Json, type Manifest, manifestsOf, podTemplate } from './rendered.ts'
import { faults } from './restricted.ts'

const read = (name: string) => readFileSync(new URL(name, CHART), 'utf8')
const operations = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')

/** The objects of a rendered chart. */
const objects = (values: Values): readonly Manifest[] => manifestsOf(render(values) ?? assert.fail(refusal(values)!))
const find = (all: readonly Manifest[], kind: string, name: string) =>
  all.find((one) => one.kind === kind && one.metadata.name === `kguardian-${name}`)
const get = (all: readonly Manifest[], kind: string, name: string) =>
  find(all, kind, name) ?? assert.fail(`there is no ${kind} ${name}`)
const hookOf = ({ metadata }: Manifest) => metadata.annotations?.['helm.sh/hook']
const weightOf = ({ metadata }: Manifest) => Number(metadata.annotations?.['helm.sh/hook-weight'] ?? 0)

const portsOf = ({ spec }: Manifest): Json[] =>
  spec.egress.flatMap(({ ports }: Json) => ports.map(({ port }: Json) => port))

const external: Values = {
  'postgres.enabled': false,
  'database.host': 'db',
  'database.existingSecret': 'broker-database',
}

for (const repository of [
  '',
  'cluster-telemetry-broker',
  'team/cluster-telemetry-broker',
  '/cluster-telemetry-broker',
]) {
  test(`the image ${JSON.stringify(repository)} without a registry is refused with a remedy`, { skip }, () => {
    const said = refusal({ 'image.repository': repository })
    assert.match(said ?? 'taken', /image\.repository "[^"]*" names no registry/)
    assert.match(
      said!,
      /push the image .* registry\.example\.com\/cluster-telemetry-broker.* localhost\/cluster-telemetry-broker/,
    )
  })
}

for (const repository of [
  'registry.example.com/a',
  'localhost/a',
  'localhost:5000/a/b',
  '[2001:db8::1]:5000/a',
  'docker.io/library/a',
])
  test(`the image ${repository} is accepted`, { skip }, () =>
    assert.equal(refusal({ 'image.repository': repository }), null),
  )

test('the README of the chart says that the image needs a registry, and how an image on the nodes is named', () => {
  assert.match(read('README.md'), /`image\.repository`[^.]*registry/)
  assert.match(read('README.md'), /localhost\/cluster-telemetry-broker/)
})

test('images of PostgreSQL are named with their registry', () => {
  const { postgres, backup } = readValues() as Json
  for (const { image } of [postgres, backup]) assert.equal(image.repository, 'docker.io/library/postgres')
})

test('the autoscaler aims at an absolute CPU use, independent of the request', { skip }, () => {
  for (const cpu of ['100m', '500m', null]) {
    const { spec } = get(
      objects({ ...external, 'broker.autoscaling.enabled': true, 'broker.resources.requests.cpu': cpu }),
      'HorizontalPodAutoscaler',
      'broker',
    )
    assert.deepEqual(spec.metrics[0].resource, { name: 'cpu', target: { type: 'AverageValue', averageValue: '700m' } })
  }
})

test('a CPU limit that is not above the target of the autoscaler is refused', { skip }, () => {
  const said = (limit: unknown) =>
    refusal({
      ...external,
      'broker.autoscaling.enabled': true,
      'broker.resources.limits': { cpu: limit, memory: '1Gi' },
    })
  for (const limit of ['500m', '700m', 0.7, '0.5'])
    assert.match(said(limit) ?? 'taken', /broker\.resources\.limits\.cpu .*targetCPU/)
  for (const limit of ['701m', 1, '1', '1.5', '2000m']) assert.equal(said(limit), null)
  assert.match(said('much') ?? 'taken', /broker\.resources\.limits\.cpu: "much" is not an amount of CPU/)
})

test('CPU and memory requests and the target of the autoscaler are those of the sizing page', () => {
  const { resources, autoscaling } = (readValues() as Json).broker
  assert.deepEqual(resources.requests, { cpu: '500m', memory: '384Mi' })
  assert.equal(autoscaling.targetCPU, '700m')
  const sizing = operations.slice(operations.indexOf('## Sizing'), operations.indexOf('## High availability'))
  for (const amount of ['`500m`', '`384Mi`', '`700m`']) assert.ok(sizing.includes(amount), amount)
})

test('the notes show the number of connections and how it is computed', { skip }, () => {
  assert.match(notes(external), /\(2 \+ 1\) x 32 = 96 connections/)
  assert.match(notes(external), /show max_connections/)
  assert.match(
    notes({ ...external, 'broker.replicas': 4, 'database.poolMaxSize': 10 }),
    /\(4 \+ 1\) x 10 = 50 connections/,
  )
  const scaled = { ...external, 'broker.autoscaling.enabled': true, 'broker.autoscaling.maxReplicas': 9 }
  assert.match(notes(scaled), /\(9 \+ 1\) x 32 = 320 connections/)
  const scheduled = notes({ ...external, 'jobs.mode': 'external' })
  assert.match(scheduled, new RegExp(`\\(2 \\+ 1\\) x 32 \\+ ${jobs.length} x 4 = ${96 + jobs.length * 4} connections`))
  assert.match(notes({}), /\(2 \+ 1\) x 32 = 96 connections.* 197/s)
})

test('more connections than the trial database accepts are refused, with the numbers to change', { skip }, () => {
  // Three are reserved for its owner.
  const fits = (values: Values) => refusal({ 'postgres.maxConnections': 99, ...values })
  assert.equal(fits({}), null)
  const said = fits({ 'postgres.maxConnections': 98 }) ?? 'taken'
  assert.match(
    said,
    /\(2 \+ 1\) x 32 = 96 connections.* 95: .*postgres\.maxConnections .* at least 99.* database\.poolMaxSize/,
  )
  assert.match(fits({ 'broker.replicas': 3 }) ?? 'taken', /\(3 \+ 1\) x 32 = 128 connections/)
  assert.match(fits({ 'jobs.mode': 'external' }) ?? 'taken', /x 4 = \d+ connections/)
  assert.match(refusal({ 'broker.autoscaling.enabled': true }) ?? 'taken', /\(6 \+ 1\) x 32 = 224 connections/)
  // The limit of an external database is unknown here.
  assert.equal(refusal({ ...external, 'broker.replicas': 50 }), null)
})

test('the network policy of the migration is created before its Job and removed with it', { skip }, () => {
  const all = objects({ ...external, 'networkPolicy.enabled': true })
  const [policy, job] = [get(all, 'NetworkPolicy', 'migration'), get(all, 'Job', 'migration')]
  assert.deepEqual([hookOf(policy), hookOf(job)], Array(2).fill('pre-install,pre-upgrade'))
  assert.ok(weightOf(policy) < weightOf(job))
  for (const { metadata } of [policy, job])
    assert.equal(metadata.annotations!['helm.sh/hook-delete-policy'], 'before-hook-creation,hook-succeeded')
  for (const name of ['broker']) assert.equal(hookOf(get(all, 'NetworkPolicy', name)), undefined)
})

const tested = {
  'frontend.enabled': true,
  'networkPolicy.enabled': true,
  'networkPolicy.apiFrom': [{ podSelector: {} }],
}

test('helm test checks the broker, and the edge proxy if enabled, from a pod of the same image', { skip }, () => {
  const all = objects({ ...tested, 'networkPolicy.frontendFrom': [{ podSelector: {} }] })
  const pod = get(all, 'Pod', 'test')
  assert.equal(hookOf(pod), 'test')
  assert.equal(pod.metadata.annotations!['helm.sh/hook-delete-policy'], 'before-hook-creation,hook-succeeded')
  const [one] = pod.spec.containers
  assert.equal(one.image, container(get(all, 'Deployment', 'broker')).image)
  assert.deepEqual(one.command.slice(0, 1), ['node'])
  assert.equal(one.args.at(-1), read('files/ready.mjs'))
  assert.deepEqual(one.env, [
    { name: 'BROKER_URL', value: 'http://kguardian-broker.telemetry.svc:9090' },
    { name: 'EDGE_URL', value: 'http://kguardian-frontend.telemetry.svc:8080/api' },
  ])
  const elsewhere = get(objects({ ...tested, 'frontend.basePath': '/telemetry/' }), 'Pod', 'test').spec.containers[0]
  assert.equal(elsewhere.env[1].value, 'http://kguardian-frontend.telemetry.svc:8080/telemetry')
  assert.deepEqual(faults(pod.spec), [])
  assert.deepEqual([pod.spec.restartPolicy, pod.spec.automountServiceAccountToken], ['Never', false])
  const without = get(objects({}), 'Pod', 'test').spec.containers[0].env
  assert.deepEqual(
    without.map(({ name }: Json) => name),
    ['BROKER_URL'],
  )
})

test('network policies let the pod of helm test reach the broker and the edge proxy', { skip }, () => {
  const all = objects({ ...tested, 'networkPolicy.frontendFrom': [{ podSelector: {} }] })
  const peers = (rules: Json[]) =>
    rules.flatMap(({ to, from }) =>
      (to ?? from ?? []).flatMap((peer: Json) => peer.podSelector?.matchLabels?.['app.kubernetes.io/component'] ?? []),
    )
  const { spec } = get(all, 'Pod', 'test')
  assert.ok(spec)
  assert.ok(peers(get(all, 'NetworkPolicy', 'broker').spec.ingress).includes('test'))
  assert.ok(peers(get(all, 'NetworkPolicy', 'frontend').spec.ingress).includes('test'))
  const own = get(all, 'NetworkPolicy', 'test')
  assert.deepEqual([hookOf(own), peers(own.spec.egress)], ['test', ['broker', 'frontend']])
  const served = (name: string) => container(get(all, 'Deployment', name)).ports[0].containerPort
  assert.deepEqual(portsOf(own).slice(-2), [served('broker'), served('frontend')])
  assert.ok(weightOf(own) < weightOf(get(all, 'Pod', 'test')))
})

const IDS = ['runAsUser', 'runAsGroup', 'fsGroup']
const everyPod: Values = {
  ...external,
  'jobs.mode': 'external',
  'frontend.enabled': true,
  'backup.enabled': true,
  'backup.existingClaim': 'dumps',
}
/** The specifications of all pods except those of the controller. */
const podsOf = (all: readonly Manifest[]): [name: string, spec: Json][] =>
  all.flatMap((one) => {
    const spec = podTemplate(one)?.spec
    return spec === undefined || one.kind === 'DaemonSet' ? [] : [[one.metadata.name, spec] as [string, Json]]
  })

test('null removes the ids of pods, as OpenShift needs, and the rest of the security context stays', {
  skip,
}, () => {
  const without = Object.fromEntries(IDS.map((id) => [`podSecurityContext.${id}`, null]))
  const trial = Object.fromEntries(IDS.map((id) => [`postgres.podSecurityContext.${id}`, null]))
  for (const values of [
    { ...everyPod, ...without },
    { ...without, ...trial },
  ]) {
    const pods = podsOf(objects(values))
    assert.ok(pods.length >= 3)
    for (const [name, { securityContext }] of pods) {
      for (const id of IDS) assert.ok(!(id in securityContext), `${name}: ${id}`)
      assert.deepEqual(securityContext.seccompProfile, { type: 'RuntimeDefault' }, name)
      assert.equal(securityContext.runAsNonRoot, true, name)
    }
  }
})

test('null for a field without a default leaves the field out of the pod', { skip }, () => {
  // Helm itself only removes nulls that replace a default.
  const nulls = {
    'podSecurityContext.supplementalGroups': null,
    'postgres.podSecurityContext.supplementalGroups': null,
    'securityContext.privileged': null,
  }
  for (const base of [everyPod, {}]) {
    const pods = podsOf(objects({ ...base, ...nulls }))
    assert.ok(pods.length >= 3)
    for (const [name, { securityContext, containers }] of pods) {
      assert.ok(!('supplementalGroups' in securityContext), name)
      for (const one of containers) assert.ok(!('privileged' in one.securityContext), name)
    }
  }
})

test('security contexts of pods and containers are those of the values, in every pod', { skip }, () => {
  const changes = {
    'podSecurityContext.runAsUser': 4242,
    'podSecurityContext.supplementalGroups': [7],
    'securityContext.privileged': false,
  }
  for (const [name, spec] of podsOf(objects({ ...everyPod, ...changes }))) {
    assert.deepEqual([spec.securityContext.runAsUser, spec.securityContext.supplementalGroups], [4242, [7]], name)
    for (const { securityContext } of spec.containers) {
      assert.equal(securityContext.privileged, false, name)
      assert.deepEqual(securityContext.capabilities, { drop: ['ALL'] }, name)
    }
  }
})

test('the edge proxy has an Ingress for the hosts of the values', { skip }, () => {
  const { metadata, spec } = get(
    objects({
      'frontend.enabled': true,
      'frontend.ingress.enabled': true,
      'frontend.ingress.className': 'nginx',
      'frontend.ingress.annotations': { 'example.com/login': 'yes' },
      'frontend.ingress.hosts': ['ui.example.com', 'ui.example.org'],
      'frontend.ingress.tls': [{ secretName: 'ui-tls', hosts: ['ui.example.com'] }],
    }),
    'Ingress',
    'frontend',
  )
  assert.equal(metadata.annotations!['example.com/login'], 'yes')
  assert.deepEqual([spec.ingressClassName, spec.tls], ['nginx', [{ secretName: 'ui-tls', hosts: ['ui.example.com'] }]])
  assert.deepEqual(
    spec.rules.map(({ host, http }: Json) => [host, http.paths]),
    ['ui.example.com', 'ui.example.org'].map((host) => [
      host,
      [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'kguardian-frontend', port: { name: 'http' } } } }],
    ]),
  )
})

test('the edge proxy has an HTTPRoute to the gateways of the values', { skip }, () => {
  const { apiVersion, spec } = get(
    objects({
      'frontend.enabled': true,
      'frontend.httpRoute.enabled': true,
      'frontend.httpRoute.parentRefs': [{ name: 'public', namespace: 'gateways' }],
      'frontend.httpRoute.hostnames': ['ui.example.com'],
    }),
    'HTTPRoute',
    'frontend',
  )
  assert.equal(apiVersion, 'gateway.networking.k8s.io/v1')
  assert.deepEqual([spec.parentRefs, spec.hostnames], [[{ name: 'public', namespace: 'gateways' }], ['ui.example.com']])
  assert.deepEqual(spec.rules, [
    {
      matches: [{ path: { type: 'PathPrefix', value: '/' } }],
      backendRefs: [{ name: 'kguardian-frontend', port: 8080 }],
    },
  ])
})

test('an Ingress or HTTPRoute without the proxy, a host or a gateway is refused', { skip }, () => {
  const said = (values: Values) => refusal(values) ?? 'taken'
  const ingress = { 'frontend.ingress.enabled': true, 'frontend.ingress.hosts': ['ui.example.com'] }
  const route = {
    'frontend.httpRoute.enabled': true,
    'frontend.httpRoute.hostnames': ['ui.example.com'],
    'frontend.httpRoute.parentRefs': [{ name: 'public' }],
  }
  for (const way of [ingress, route]) assert.match(said(way), /needs frontend\.enabled/)
  const on = { 'frontend.enabled': true }
  assert.match(said({ ...on, ...ingress, 'frontend.ingress.hosts': [] }), /frontend\.ingress\.hosts/)
  assert.match(said({ ...on, ...route, 'frontend.httpRoute.hostnames': [] }), /frontend\.httpRoute\.hostnames/)
  assert.match(said({ ...on, ...route, 'frontend.httpRoute.parentRefs': [] }), /frontend\.httpRoute\.parentRefs/)
  assert.match(notes({ ...on, ...ingress, ...route }), /at ui\.example\.com: .*no login/s)
  assert.doesNotMatch(notes(on), /From outside/)
})

test('the edge proxy allows hosts of an enabled Ingress or HTTPRoute, except wildcards', { skip }, () => {
  const { ALLOWED_HOSTS } = environment(
    get(
      objects({
        'frontend.enabled': true,
        'frontend.allowedHosts': ['console.example.com'],
        'frontend.ingress.hosts': ['off.example.com'],
        'frontend.httpRoute.enabled': true,
        'frontend.httpRoute.parentRefs': [{ name: 'public' }],
        'frontend.httpRoute.hostnames': ['*.example.com', 'ui.example.com'],
      }),
      'Deployment',
      'frontend',
    ),
  )
  assert.deepEqual(
    ALLOWED_HOSTS.split(',').filter((name: string) => name.includes('.com')),
    ['console.example.com', 'ui.example.com'],
  )
})

test('the edge proxy serves the console unless a value turns it off, and the broker only if one turns it on', {
  skip,
}, () => {
  const consoleOf = (name: string, values: Values) => environment(get(objects(values), 'Deployment', name)).CONSOLE
  const on = { 'frontend.enabled': true }
  assert.equal(consoleOf('frontend', on), 'true')
  assert.equal(consoleOf('frontend', { ...on, 'frontend.console': false }), 'false')
  assert.equal(consoleOf('broker', on), 'false')
  assert.equal(consoleOf('broker', { 'broker.console': true }), 'true')
  assert.equal(refusal({ ...on, 'frontend.basePath': '/consoles' }), null)
  assert.equal(refusal({ ...on, 'frontend.basePath': '/console', 'frontend.console': false }), null)
  assert.match(refusal({ ...on, 'frontend.basePath': '/console' })!, /frontend\.basePath is the path of the console/)
})

test('the notes say how to open the console, or what turns it on', { skip }, () => {
  const forwarded = 'kubectl --namespace telemetry port-forward service/kguardian-frontend 8080'
  const on = { 'frontend.enabled': true }
  const tokens = { 'broker.auth.mode': 'scoped', 'broker.auth.existingSecret': 'broker-tokens' }
  assert.match(notes(on), new RegExp(`console at http://localhost:8080, run\n\n    ${forwarded}\n`))
  assert.doesNotMatch(notes(on), /is off/)
  assert.match(notes({ 'broker.console': true }), /console at http:\/\/localhost:9090\/console\/, .*as above\.\n/)
  assert.match(notes({ 'broker.console': true, ...tokens }), /as above\. It asks for the token for reading\.\n/)
  assert.match(notes({}), /is off: frontend\.enabled turns it on in the edge proxy/)
  assert.match(notes({ ...on, 'frontend.console': false }), /is off: frontend\.console turns it on/)
})

test('extra objects are rendered as given, with templates filled in', { skip }, () => {
  const one = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: '{{ .Release.Name }}-extra' },
    data: { namespace: '{{ .Release.Namespace }}' },
  }
  const all = objects({
    extraObjects: [one, 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-text\n'],
  })
  assert.deepEqual(get(all, 'ConfigMap', 'extra').data, { namespace: 'telemetry' })
  assert.ok(find(all, 'ConfigMap', 'text'))
})

test('the number of silent nodes that the alert tolerates is a value', { skip }, () => {
  const silent = (values: Values) =>
    get(
      objects({ 'serviceMonitor.enabled': true, 'prometheusRule.enabled': true, ...values }),
      'PrometheusRule',
      'broker',
    ).spec.groups[0].rules.find(({ alert }: Json) => alert === 'BrokerNodesSilent').expr
  assert.match(silent({}), /^max\(broker_nodes\{.*state="silent"\}\) > 0$/)
  assert.match(silent({ 'prometheusRule.maxSilentNodes': 3 }), / > 3$/)
})

const backup = { 'backup.enabled': true, 'backup.existingClaim': 'dumps' }

test('by default there is no backup', { skip }, () => {
  for (const values of [{}, external]) assert.equal(find(objects(values), 'Job', 'backup'), undefined)
})

test('each network policy selects the pods that it is named after, and opens the port of the database', {
  skip,
}, () => {
  const all = objects({ ...external, ...backup, ...tested, 'jobs.mode': 'external', 'database.port': 6432 })
  const policies = all.filter(({ kind }) => kind === 'NetworkPolicy')
  assert.deepEqual(
    policies.map(({ metadata, spec }) => [
      metadata.name,
      `kguardian-${spec.podSelector.matchLabels['app.kubernetes.io/component']}`,
    ]),
    policies.map(({ metadata: { name } }) => [name, name]),
  )
  for (const name of ['broker', 'jobs', 'migration', 'backup'])
    assert.deepEqual([name, portsOf(get(all, 'NetworkPolicy', name)).includes(6432)], [name, true])
})

test('each port is open to the peers in the values and to our own pods', { skip }, () => {
  const client = (name: string) => ({ podSelector: { matchLabels: { client: name } } })
  const all = objects({
    'broker.auth.mode': 'scoped',
    'broker.auth.existingSecret': 'broker-tokens',
    'frontend.enabled': true,
    'supplychain.enabled': true,
    'supplychain.image.repository': 'registry.example.com/supplychain',
    'supplychain.image.tag': 'v1',
    'networkPolicy.enabled': true,
    'networkPolicy.apiFrom': [client('agents')],
    'networkPolicy.metricsFrom': [client('prometheus')],
    'networkPolicy.frontendFrom': [client('browsers')],
  })
  const inward = (name: string) =>
    get(all, 'NetworkPolicy', name).spec.ingress.map(({ ports, from }: Json) => [
      ports[0].port,
      from.map(
        ({ podSelector: { matchLabels } }: Json) => matchLabels.client ?? matchLabels['app.kubernetes.io/component'],
      ),
    ])
  assert.deepEqual(inward('broker'), [
    ['api', ['agents', 'frontend', 'supplychain', 'test']],
    ['admin', ['prometheus']],
  ])
  assert.deepEqual(inward('frontend'), [
    ['http', ['browsers', 'test']],
    ['admin', ['prometheus']],
  ])
  assert.deepEqual(inward('supplychain'), [['http', ['prometheus']]])
  assert.deepEqual(inward('postgres'), [['postgres', ['broker', 'jobs', 'backup']]])
})

test('a backup runs before an upgrade and its migration, and writes to the claim', { skip }, () => {
  const all = objects({ ...external, ...backup, 'networkPolicy.enabled': true, 'backup.keep': 3 })
  const job = get(all, 'Job', 'backup')
  assert.equal(hookOf(job), 'pre-upgrade')
  const policy = get(all, 'NetworkPolicy', 'backup')
  assert.equal(hookOf(policy), 'pre-upgrade')
  assert.ok(weightOf(policy) < weightOf(job) && weightOf(job) < weightOf(get(all, 'NetworkPolicy', 'migration')))
  const { spec } = podTemplate(job)
  const [one] = spec.containers
  assert.equal(one.image, 'docker.io/library/postgres:18.4-trixie')
  assert.equal(one.args.at(-1), read('files/backup.sh'))
  assert.deepEqual(faults(spec), [])
  const env = environment(job)
  assert.deepEqual([env.PGHOST, env.PGDATABASE, env.BACKUP_KEEP], ['db', 'broker', '3'])
  const claim = spec.volumes.find(({ persistentVolumeClaim }: Json) => persistentVolumeClaim)
  assert.equal(claim.persistentVolumeClaim.claimName, 'dumps')
  assert.equal(one.volumeMounts.find(({ name }: Json) => name === claim.name).mountPath, env.BACKUP_FOLDER)
  assert.equal(spec.serviceAccountName, undefined)
})

test('a backup reads the trial database, and its network policy allows that', { skip }, () => {
  const all = objects({ ...backup, 'networkPolicy.enabled': true })
  assert.equal(environment(get(all, 'Job', 'backup')).PGHOST, 'kguardian-postgres')
  // Also while backups are off: the first backup runs under the policy of the previous release.
  for (const values of [backup, {}]) {
    const { spec } = get(objects({ ...values, 'networkPolicy.enabled': true }), 'NetworkPolicy', 'postgres')
    const from = spec.ingress[0].from.map(
      ({ podSelector }: Json) => podSelector.matchLabels['app.kubernetes.io/component'],
    )
    assert.ok(from.includes('backup'))
  }
})

test('a backup without a claim is refused with the reason', { skip }, () => {
  assert.match(
    refusal({ 'backup.enabled': true }) ?? 'taken',
    /backup\.enabled needs backup\.existingClaim, .*PersistentVolumeClaim/,
  )
})

test('Chart.yaml has the home, the maintainers and an icon', () => {
  const chart = load(read('Chart.yaml')) as Json
  const { repository } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  assert.match(chart.home, /^https:\/\/\S+$/)
  assert.deepEqual(chart.sources, [chart.home])
  assert.equal(repository, undefined, 'then home and sources are that')
  assert.ok(
    chart.maintainers.length > 0 &&
      chart.maintainers.every(({ name }: Json) => typeof name === 'string' && name !== ''),
  )
  const [, picture] = /^data:image\/svg\+xml;base64,([\w+/=]+)$/.exec(chart.icon)!
  assert.match(Buffer.from(picture!, 'base64').toString(), /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"/)
})
