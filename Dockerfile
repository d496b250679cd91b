# One image for the broker, its migration, its jobs, the edge proxy and the command line; the arguments select the
# program:
#
#   docker build --tag cluster-telemetry-broker .
#   docker run cluster-telemetry-broker                                              # the broker
#   docker run cluster-telemetry-broker dist/sql/migrate.js
#   docker run cluster-telemetry-broker dist/jobs/run.js late-resolve
#   docker run cluster-telemetry-broker dist/wrangler-free-deploy/edge/server.js     # the edge proxy
#   docker run cluster-telemetry-broker dist/ctb.mjs --help                          # the command line
#
# --build-arg NODE_IMAGE=... selects another mirror or a newer patch release. Node 24 to 26 may misread keys of bodies
# (nodejs/node#63785).
ARG NODE_IMAGE=node:22.23.3-trixie-slim

# The stages that run commands use the architecture of the builder: their output is JavaScript, the same for all.
FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
# `dist` is a link to the build. chmod: files from a checkout that only its owner can read must be readable in the image.
RUN npm run build && npm run sbom && npm run notices && cp -RL dist built && chmod -R a+rX LICENSE package.json built wrangler-free-deploy

FROM ${NODE_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=
ARG SOURCE=
LABEL org.opencontainers.image.title="cluster-telemetry-broker" \
      org.opencontainers.image.description="The telemetry store at the centre of a Kubernetes runtime security system: pods, flows, services, attributed and served." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}"
# Two arenas: with more, glibc retains the memory that large bodies and lists have freed.
ENV NODE_ENV=production MALLOC_ARENA_MAX=2
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/LICENSE /app/package.json /app/wrangler-free-deploy/healthcheck.mjs ./
COPY --from=build /app/built dist
# A numeric user, so that Kubernetes can check that it is not root. Root owns all files, and nothing is written.
USER 1000:1000
EXPOSE 9090 9091
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["node", "healthcheck.mjs"]
# One V8 worker thread: the default of four delays requests on two cores while the heap is marked.
ENTRYPOINT ["node", "--v8-pool-size=1"]
CMD ["dist/lib/server.js"]
