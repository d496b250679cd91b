# One image for the broker, its migration, its jobs and the edge proxy; the arguments say which:
#
#   docker build --tag cluster-telemetry-broker .
#   docker run cluster-telemetry-broker                                              # the broker
#   docker run cluster-telemetry-broker dist/sql/migrate.js
#   docker run cluster-telemetry-broker dist/jobs/run.js late-resolve
#   docker run cluster-telemetry-broker dist/wrangler-free-deploy/edge/server.js     # the edge proxy
#
# Another mirror or a newer patch release: --build-arg NODE_IMAGE=... Not 24 to 26, which may misread keys of bodies (nodejs/node#63785).
ARG NODE_IMAGE=node:22.23.3-trixie-slim

# Both stages that run something run on the builder's own architecture: what they make is JavaScript, the same for every other.
FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
# `dist` is a link to what was built. A checkout that only its owner can read would make an image that its own user cannot.
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
# Two arenas: otherwise glibc comes to keep what large bodies and lists let go of.
ENV NODE_ENV=production MALLOC_ARENA_MAX=2
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/LICENSE /app/package.json /app/wrangler-free-deploy/healthcheck.mjs ./
COPY --from=build /app/built dist
# By number, for whoever checks that it is not root. All files are root's, and nothing is written.
USER 1000:1000
EXPOSE 9090 9091
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["node", "healthcheck.mjs"]
# One thread that marks the heap: with the usual four, requests on two cores wait for them.
ENTRYPOINT ["node", "--v8-pool-size=1"]
CMD ["dist/lib/server.js"]
