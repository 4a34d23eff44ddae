#!/usr/bin/env bash
# Unpack Redis 8, which has vector sets, into a folder, for machines whose distribution has an older version or none.
#
#     scripts/redis_8.sh FOLDER    # then FOLDER/redis-server runs it
#
# It downloads packages of Debian 13 and their libraries with apt, unpacks them there, and installs nothing. It needs apt, Debian's
# keys, and a 64-bit Intel or AMD processor.
set -eu

folder=$(mkdir -p "$1" && cd "$1" && pwd)
mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial" "$folder/packages"
echo "deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main" \
    >"$folder/sources.list"
options=(-qq -o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$folder/lists" -o "Dir::Cache=$folder/cache" -o APT::Sandbox::User=)
apt-get "${options[@]}" update
cd "$folder/packages"
apt-get "${options[@]}" download redis-tools libatomic1 libc6 libcap2 libgcc-s1 libjemalloc2 liblzf1 libssl3t64 libstdc++6 \
    libsystemd0 libzstd1 zlib1g
for package in *.deb; do
    dpkg-deb -x "$package" "$folder/root"
done
rm -r "$folder/lists" "$folder/cache" "$folder/packages"

# the server and redis-check-rdb are one program, which decides by the name of its file
libraries=$folder/root/usr/lib/x86_64-linux-gnu
cat >"$folder/redis-server.part" <<END
#!/bin/sh
exec '$libraries/ld-linux-x86-64.so.2' --library-path '$libraries' --argv0 redis-server '$folder/root/usr/bin/redis-check-rdb' "\$@"
END
chmod +x "$folder/redis-server.part"
mv "$folder/redis-server.part" "$folder/redis-server"
