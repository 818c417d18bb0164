# One VM's hardware: adapters, and a guest that is booted again when it asks for that. Pid 1 of the VM's own namespace.
# Arguments: the VM's folder, its disk, the image's root, the hub's pid; then MAC and bridge of each adapter.
set -eu
at=$1 disk=$2 image=$3 hub=$4
shift 4
# Not the machine's own congestion control: BBR leaves a link idle now and then to see its delay, and two nodes' exchange of
# 4 MiB over 50 Mbit/s takes 0.71 to 0.98 s by it, and 0.716 to 0.728 s by CUBIC and Reno (Linux 6.18). A namespace may
# not choose what the machine has not allowed: CUBIC, which distributions ship, is that only where it is the machine's.
for each in cubic reno; do
    ! { echo $each >/proc/sys/net/ipv4/tcp_congestion_control; } 2>/dev/null || break
done
number=0
while [ $# -gt 0 ]; do
    port="$(basename "$at")-$number"
    # The kernel takes away an ended VM's adapters when it finds the time.
    nsenter --net="/proc/$hub/ns/net" ip link delete "$port" 2>/dev/null || :
    ip link add "eth$number" address "$1" mtu 1500 type veth peer name "$port" netns "/proc/$hub/ns/net"
    nsenter --net="/proc/$hub/ns/net" ip link set "$port" master "$2" mtu 9000 up
    number=$((number + 1))
    shift 2
done
read -r pid _ </proc/self/stat
echo "$pid" >"$at/machine.pid.new"
mv "$at/machine.pid.new" "$at/machine.pid"
again=85
while [ $again -eq 85 ]; do
    rm -f "$at/tools/booted"
    cat /proc/sys/kernel/random/uuid >"$at/boot_id"
    unshare --mount --pid --fork --kill-child sh "$at/init.sh" "$at" "$disk" "$image" && again=0 || again=$?
done
