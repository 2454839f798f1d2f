# anchorhood from a clone:
#   docker build --tag anchorhood .
#   docker run --rm --volume ~/pictures:/pictures:ro --volume "$PWD:/work" anchorhood index /pictures
#   docker run --rm --gpus all --volume "$PWD:/work" anchorhood train cifar10         with NVIDIA's container toolkit
# The page: add --init --publish 127.0.0.1:4242:4242, and `serve … --host 0.0.0.0 --token-file word.txt`.
# Indices of folders are kept from run to run with --volume anchorhood:/cache; --user "$(id -u):$(id -g)" makes what is written yours.
FROM rust:1.95-slim-trixie AS build
WORKDIR /source
COPY . .
RUN cargo build --release --locked --package anchorhood-cli

FROM debian:trixie-slim
COPY --from=build /source/target/release/anchorhood /usr/local/bin/anchorhood
COPY --from=build /source/LICENSE-MIT /source/LICENSE-APACHE /usr/share/doc/anchorhood/
# The toolkit mounts the driver's library where this says "compute"; cuDNN and NVRTC come from pip's nvidia-cudnn-cu13 and
# nvidia-cuda-nvrtc, or from an image of NVIDIA's put in the place of this one.
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility
RUN mkdir --mode 1777 /cache
ENV ANCHORHOOD_CACHE=/cache
WORKDIR /work
ENTRYPOINT ["anchorhood"]
