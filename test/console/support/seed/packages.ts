/**
 * Packages and vulnerabilities of the seeded images. Names, ids, severities and fixed versions come from public
 * advisories, shortened; their assignment to images is made up.
 */

export interface Package {
  readonly name: string
  readonly version: string
  readonly type: string
  readonly license: string
  /** Without a leading slash, as in SBOMs. */
  readonly files: readonly string[]
}

export interface Advisory {
  readonly id: string
  readonly package: string
  readonly severity: 'CRITICAL' | 'HIGH' | 'MEDIUM' | 'LOW'
  readonly score: number
  readonly fixed: string | null
  readonly epss: number
  readonly kev?: string
  readonly title: string
}

const deb = (name: string, version: string, license: string, ...files: string[]): Package => ({
  ...{ name, version, type: 'debian', license, files },
})
const lib = (name: string) => `usr/lib/x86_64-linux-gnu/${name}`
const npm = (name: string, version: string): Package => ({
  ...{ name, version, type: 'npm', license: 'MIT', files: [`app/node_modules/${name}/package.json`] },
})
const jar = (group: string, artifact: string, version: string): Package => ({
  ...{ name: `${group}:${artifact}`, version, type: 'maven', license: 'Apache-2.0' },
  files: [`app/lib/${artifact}-${version}.jar`],
})
const py = (name: string, version: string): Package => ({
  ...{ name, version, type: 'pypi', license: 'BSD-3-Clause' },
  files: [`usr/local/lib/python3.11/site-packages/${name}/__init__.py`],
})
const go = (name: string, version: string): Package => ({
  ...{ name, version, type: 'golang', license: 'BSD-3-Clause', files: ['app/server'] },
})

/** Packages of all Debian images. */
export const DEBIAN: readonly Package[] = [
  deb('libc6', '2.36-9+deb12u3', 'LGPL-2.1', lib('libc.so.6'), lib('ld-linux-x86-64.so.2')),
  deb('libssl3', '3.0.11-1~deb12u2', 'Apache-2.0', lib('libssl.so.3'), lib('libcrypto.so.3')),
  deb('openssl', '3.0.11-1~deb12u2', 'Apache-2.0', 'usr/bin/openssl'),
  deb('zlib1g', '1:1.2.13.dfsg-1', 'Zlib', lib('libz.so.1.2.13')),
  deb('libcurl4', '7.88.1-10+deb12u3', 'curl', lib('libcurl.so.4.8.0')),
  deb('curl', '7.88.1-10+deb12u3', 'curl', 'usr/bin/curl'),
  deb('bash', '5.2.15-2+b2', 'GPL-3.0', 'usr/bin/bash'),
  deb('dash', '0.5.12-2', 'BSD-3-Clause', 'usr/bin/dash'),
  deb('coreutils', '9.1-1', 'GPL-3.0', 'usr/bin/cat', 'usr/bin/ls'),
  deb('tar', '1.34+dfsg-1.2', 'GPL-3.0', 'usr/bin/tar'),
  deb('perl-base', '5.36.0-7', 'Artistic-2.0', 'usr/bin/perl'),
  deb('libtinfo6', '6.4-4', 'MIT', lib('libtinfo.so.6.4')),
  deb('liblzma5', '5.4.1-0.2', '0BSD', lib('liblzma.so.5.4.1')),
  deb('libdb5.3', '5.3.28+dfsg2-1', 'Sleepycat', lib('libdb-5.3.so')),
  deb('libexpat1', '2.5.0-1', 'MIT', lib('libexpat.so.1.8.10')),
  deb('libsystemd0', '252.19-1~deb12u1', 'LGPL-2.1', lib('libsystemd.so.0.35.0')),
  deb('libgnutls30', '3.7.9-2', 'LGPL-2.1', lib('libgnutls.so.30.34.3')),
  deb('libkrb5-3', '1.20.1-2', 'MIT', lib('libkrb5.so.3.3')),
  deb('ca-certificates', '20230311', 'MPL-2.0', 'etc/ssl/certs/ca-certificates.crt'),
  deb('tzdata', '2024a-0+deb12u1', 'public-domain', 'usr/share/zoneinfo/UTC'),
  deb('apt', '2.6.1', 'GPL-2.0', 'usr/bin/apt'),
  deb('util-linux', '2.38.1-5+b1', 'GPL-2.0', 'usr/bin/mount'),
]

/** Packages on top of Debian, by the language of the program. */
export const STACKS: readonly { readonly exec: string; readonly packages: readonly Package[] }[] = [
  {
    exec: '/usr/local/bin/node',
    packages: [
      ...[npm('express', '4.18.2'), npm('lodash', '4.17.20'), npm('axios', '1.5.0'), npm('qs', '6.9.6')],
      ...[npm('minimist', '1.2.5'), npm('jsonwebtoken', '8.5.1'), npm('ws', '8.16.0'), npm('semver', '7.3.8')],
      ...[npm('body-parser', '1.20.1'), npm('follow-redirects', '1.15.3'), npm('left-pad', '1.3.0')],
    ],
  },
  {
    exec: '/opt/java/openjdk/bin/java',
    packages: [
      jar('org.springframework', 'spring-web', '6.0.11'),
      jar('org.springframework', 'spring-beans', '6.0.11'),
      jar('com.fasterxml.jackson.core', 'jackson-databind', '2.13.3'),
      jar('org.yaml', 'snakeyaml', '1.33'),
      jar('org.apache.tomcat.embed', 'tomcat-embed-core', '10.1.33'),
      jar('ch.qos.logback', 'logback-classic', '1.4.11'),
      jar('org.postgresql', 'postgresql', '42.5.1'),
      jar('io.netty', 'netty-codec-http2', '4.1.97.Final'),
    ],
  },
  {
    exec: '/usr/local/bin/python3.11',
    packages: [
      ...[py('requests', '2.28.2'), py('urllib3', '1.26.14'), py('jinja2', '3.1.2'), py('django', '4.2.6')],
      ...[py('cryptography', '41.0.3'), py('certifi', '2022.12.7'), py('pillow', '10.0.0'), py('gunicorn', '21.2.0')],
    ],
  },
  {
    exec: '/app/server',
    packages: [
      go('stdlib', '1.21.3'),
      go('golang.org/x/net', '0.15.0'),
      go('golang.org/x/crypto', '0.16.0'),
      go('google.golang.org/grpc', '1.57.0'),
      go('golang.org/x/oauth2', '0.12.0'),
      go('github.com/prometheus/client_golang', '1.17.0'),
    ],
  },
]

const advisory = (
  id: string,
  of: string,
  severity: Advisory['severity'],
  score: number,
  fixed: string | null,
  epss: number,
  title: string,
  kev?: string,
): Advisory => ({ id, package: of, severity, score, fixed, epss, title, ...(kev && { kev }) })

export const ADVISORIES: readonly Advisory[] = [
  advisory(
    'CVE-2023-4911',
    'libc6',
    'HIGH',
    7.8,
    '2.36-9+deb12u4',
    0.61,
    'glibc: buffer overflow in ld.so leading to privilege escalation',
    '2023-11-21',
  ),
  advisory(
    'CVE-2024-2961',
    'libc6',
    'HIGH',
    8.8,
    '2.36-9+deb12u6',
    0.92,
    'glibc: out of bounds write in iconv may lead to remote code execution',
  ),
  advisory(
    'CVE-2024-33599',
    'libc6',
    'HIGH',
    8.1,
    '2.36-9+deb12u7',
    0.02,
    'glibc: stack-based buffer overflow in netgroup cache',
  ),
  advisory('CVE-2019-1010022', 'libc6', 'LOW', 9.8, null, 0.01, 'glibc: stack guard protection bypass'),
  advisory(
    'CVE-2023-5678',
    'libssl3',
    'MEDIUM',
    5.3,
    '3.0.13-1~deb12u1',
    0.01,
    'openssl: generating excessively long X9.42 DH keys may be very slow',
  ),
  advisory(
    'CVE-2024-0727',
    'libssl3',
    'MEDIUM',
    5.5,
    '3.0.13-1~deb12u1',
    0.004,
    'openssl: denial of service via null dereference in PKCS12',
  ),
  advisory(
    'CVE-2024-5535',
    'openssl',
    'CRITICAL',
    9.1,
    '3.0.14-1~deb12u2',
    0.05,
    'openssl: SSL_select_next_proto buffer overread',
  ),
  advisory(
    'CVE-2023-45853',
    'zlib1g',
    'CRITICAL',
    9.8,
    null,
    0.008,
    'zlib: integer overflow and heap overflow in zipOpenNewFileInZip4_64',
  ),
  advisory(
    'CVE-2023-38545',
    'libcurl4',
    'CRITICAL',
    9.8,
    '7.88.1-10+deb12u4',
    0.26,
    'curl: heap based buffer overflow in the SOCKS5 proxy handshake',
  ),
  advisory(
    'CVE-2023-46218',
    'curl',
    'MEDIUM',
    6.5,
    '7.88.1-10+deb12u5',
    0.002,
    'curl: mixed case domain bypasses the public suffix list',
  ),
  advisory(
    'CVE-2024-2398',
    'libcurl4',
    'HIGH',
    8.6,
    '7.88.1-10+deb12u6',
    0.01,
    'curl: HTTP/2 push headers memory leak',
  ),
  advisory(
    'CVE-2016-2781',
    'coreutils',
    'LOW',
    6.5,
    null,
    0.0005,
    'coreutils: non-privileged session can escape to the parent session in chroot',
  ),
  advisory(
    'CVE-2005-2541',
    'tar',
    'LOW',
    10,
    null,
    0.03,
    'tar: does not properly warn the user when extracting setuid or setgid files',
  ),
  advisory('CVE-2023-31484', 'perl-base', 'HIGH', 8.1, null, 0.02, 'perl: CPAN.pm does not verify TLS certificates'),
  advisory(
    'CVE-2023-29491',
    'libtinfo6',
    'HIGH',
    7.8,
    '6.4-4+deb12u1',
    0.001,
    'ncurses: local users can trigger memory corruption',
  ),
  advisory(
    'CVE-2019-8457',
    'libdb5.3',
    'CRITICAL',
    9.8,
    null,
    0.06,
    'sqlite: heap out-of-bound read in function rtreenode()',
  ),
  advisory(
    'CVE-2023-52425',
    'libexpat1',
    'HIGH',
    7.5,
    '2.5.0-1+deb12u1',
    0.01,
    'expat: parsing large tokens can trigger a denial of service',
  ),
  advisory(
    'CVE-2024-45492',
    'libexpat1',
    'CRITICAL',
    9.8,
    '2.5.0-1+deb12u1',
    0.02,
    'libexpat: integer overflow in nextScaffoldPart',
  ),
  advisory(
    'CVE-2024-0553',
    'libgnutls30',
    'HIGH',
    7.5,
    '3.7.9-2+deb12u2',
    0.01,
    'gnutls: incomplete fix for a timing side-channel in RSA-PSK',
  ),
  advisory(
    'CVE-2024-37371',
    'libkrb5-3',
    'CRITICAL',
    9.1,
    '1.20.1-2+deb12u2',
    0.02,
    'krb5: GSS message token handling',
  ),
  advisory('CVE-2011-3374', 'apt', 'LOW', 3.7, null, 0.001, 'apt: apt-key did not correctly validate gpg keys'),
  advisory(
    'CVE-2024-28085',
    'util-linux',
    'LOW',
    3.3,
    '2.38.1-5+deb12u1',
    0.01,
    'util-linux: escape sequence injection in wall',
  ),
  advisory('CVE-2021-23337', 'lodash', 'HIGH', 7.2, '4.17.21', 0.01, 'nodejs-lodash: command injection via template'),
  advisory(
    'CVE-2023-45857',
    'axios',
    'MEDIUM',
    6.5,
    '1.6.0',
    0.002,
    'axios: exposure of confidential data stored in cookies',
  ),
  advisory(
    'CVE-2022-24999',
    'qs',
    'HIGH',
    7.5,
    '6.9.7',
    0.03,
    'express: "qs" prototype poisoning causes the hang of the node process',
  ),
  advisory('CVE-2021-44906', 'minimist', 'CRITICAL', 9.8, '1.2.6', 0.01, 'minimist: prototype pollution'),
  advisory(
    'CVE-2022-23529',
    'jsonwebtoken',
    'HIGH',
    7.6,
    '9.0.0',
    0.02,
    'jsonwebtoken: insecure implementation of key retrieval',
  ),
  advisory(
    'CVE-2024-37890',
    'ws',
    'HIGH',
    7.5,
    '8.17.1',
    0.005,
    'nodejs-ws: denial of service when handling a request with many HTTP headers',
  ),
  advisory(
    'CVE-2024-29041',
    'express',
    'MEDIUM',
    6.1,
    '4.19.2',
    0.001,
    'express: malformed URLs are evaluated as redirects',
  ),
  advisory('CVE-2024-45590', 'body-parser', 'HIGH', 7.5, '1.20.3', 0.002, 'body-parser: denial of service'),
  advisory(
    'CVE-2025-24813',
    'org.apache.tomcat.embed:tomcat-embed-core',
    'CRITICAL',
    9.8,
    '10.1.35',
    0.94,
    'tomcat: remote code execution or information disclosure through partial PUT',
    '2025-04-01',
  ),
  advisory(
    'CVE-2022-42003',
    'com.fasterxml.jackson.core:jackson-databind',
    'HIGH',
    7.5,
    '2.13.4.2',
    0.01,
    'jackson-databind: deep wrapper array nesting with UNWRAP_SINGLE_VALUE_ARRAYS',
  ),
  advisory(
    'CVE-2022-1471',
    'org.yaml:snakeyaml',
    'HIGH',
    8.3,
    '2.0',
    0.93,
    'SnakeYaml: constructor deserialization remote code execution',
  ),
  advisory(
    'CVE-2024-22243',
    'org.springframework:spring-web',
    'HIGH',
    8.1,
    '6.0.17',
    0.05,
    'springframework: URL parsing with host validation',
  ),
  advisory(
    'CVE-2024-1597',
    'org.postgresql:postgresql',
    'CRITICAL',
    10,
    '42.5.5',
    0.01,
    'pgjdbc: SQL injection if PreferQueryMode=SIMPLE',
  ),
  advisory(
    'CVE-2023-44487',
    'io.netty:netty-codec-http2',
    'HIGH',
    7.5,
    '4.1.100.Final',
    0.94,
    'HTTP/2: rapid reset attack',
    '2023-10-10',
  ),
  advisory(
    'CVE-2023-32681',
    'requests',
    'MEDIUM',
    6.1,
    '2.31.0',
    0.06,
    'python-requests: unintended leak of the Proxy-Authorization header',
  ),
  advisory(
    'CVE-2023-43804',
    'urllib3',
    'HIGH',
    8.1,
    '1.26.17',
    0.002,
    'python-urllib3: cookie request header is not stripped during redirects',
  ),
  advisory(
    'CVE-2024-22195',
    'jinja2',
    'MEDIUM',
    6.1,
    '3.1.3',
    0.001,
    'jinja2: HTML attribute injection through xmlattr',
  ),
  advisory(
    'CVE-2024-42005',
    'django',
    'CRITICAL',
    9.8,
    '4.2.15',
    0.01,
    'python-django: SQL injection in QuerySet.values()',
  ),
  advisory(
    'CVE-2023-4863',
    'pillow',
    'HIGH',
    8.8,
    '10.0.1',
    0.93,
    'libwebp: heap buffer overflow in WebP',
    '2023-09-13',
  ),
  advisory(
    'CVE-2024-24790',
    'stdlib',
    'CRITICAL',
    9.8,
    '1.21.11',
    0.01,
    'golang: net/netip: unexpected behavior of Is methods for IPv4-mapped IPv6',
  ),
  advisory(
    'CVE-2023-39325',
    'golang.org/x/net',
    'HIGH',
    7.5,
    '0.17.0',
    0.01,
    'golang: net/http, x/net/http2: rapid stream resets can cause excessive work',
  ),
  advisory(
    'CVE-2024-45337',
    'golang.org/x/crypto',
    'CRITICAL',
    9.1,
    '0.31.0',
    0.3,
    'golang.org/x/crypto/ssh: misuse of PublicKeyCallback may bypass authorization',
  ),
  advisory(
    'CVE-2023-44487',
    'google.golang.org/grpc',
    'HIGH',
    7.5,
    '1.58.3',
    0.94,
    'HTTP/2: rapid reset attack',
    '2023-10-10',
  ),
  advisory(
    'CVE-2025-22868',
    'golang.org/x/oauth2',
    'HIGH',
    7.5,
    '0.27.0',
    0.001,
    'golang.org/x/oauth2/jws: unexpected memory consumption during token parsing',
  ),
]

export const purlOf = ({ name, version, type }: Package): string => {
  const path = { debian: `deb/debian/${name}`, maven: `maven/${name.replace(':', '/')}` }[type] ?? `${type}/${name}`
  return `pkg:${path}@${version.replace('+', '%2B').replace('~', '~')}`
}
