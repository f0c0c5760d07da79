# The program in a small image, as a user without rights. The project is mounted at /project.
#
#     docker build -t watershed .
#     docker run --rm -v "$PWD:/project" watershed run

FROM node:22-bookworm-slim AS console
WORKDIR /source
COPY . .
RUN scripts/console build

FROM rust:1.94-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3-pip \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
COPY --from=console /source/console/dist console/dist
ARG WATERSHED_COMMIT=unknown
ENV WATERSHED_COMMIT=$WATERSHED_COMMIT
RUN scripts/fetch-duckdb \
    && cargo build --locked --release --package watershed-cli --bin watershed --features console \
    && scripts/package --only archive --program target/release/watershed --out /packages \
    && mkdir /install && tar -xzf /packages/*.tar.gz --strip-components=1 -C /install

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends libstdc++6 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home --shell /usr/sbin/nologin watershed \
    && install -d -o watershed /project
COPY --from=build /install /usr/local
USER 10001
WORKDIR /project
ENTRYPOINT ["watershed"]
CMD ["--help"]
