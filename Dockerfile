# syntax=docker/dockerfile:1
# joiner as one static binary in an otherwise empty image:
#   docker build --build-arg COMMIT=$(git rev-parse --short=7 HEAD) -t joiner .

# Alpine's compilers make static binaries: its C library is musl.
FROM rust:1.95-alpine AS build
RUN apk add --no-cache musl-dev gcc ca-certificates
WORKDIR /joiner
COPY . .
# Shown in every line of the log as JSON, and in `karpenter_build_info`.
ARG COMMIT
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/joiner/target \
    env ${COMMIT:+JOINER_COMMIT="$COMMIT"} cargo build --profile image --locked --bin joiner && cp target/image/joiner /usr/local/bin/joiner

FROM scratch
# For clouds; the API server's certificate comes with the ServiceAccount.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /usr/local/bin/joiner /joiner
# Nobody: a user that no image has. A number, so that `runAsNonRoot` can be checked.
USER 65532:65532
EXPOSE 8080 8081
ENTRYPOINT ["/joiner"]
