# The lab's network and disks: pid 1 of a PID namespace that all guests live in, so that they end with it.
# Arguments: the guests' folder. Standard input: a pipe that ends with the lab.
set -eu
cd "$1"
mount -t tmpfs -o mode=700 vsml-lab disks
ip link set lo up
for each in management fabric; do
    ip link add "$each" type bridge
    ip link set "$each" mtu 9000 up
done
# This /proc is the machine's, so this is the number that the machine knows the hub by.
read -r pid _ </proc/self/stat
echo "$pid" >hub.pid.new
mv hub.pid.new hub.pid
read -r _ || :
