/* Stands in for nccl-tests' all_reduce_perf in lab guests, which have no GPU: MPI's own all-reduce over their real
 * network, told in nccl-tests' table. It shows how vsml starts, reads and proves such a run, and nothing of NCCL. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long bytes(const char *text) {
    char *end;
    long value = strtol(text, &end, 10);
    return *end == 'G' ? value << 30 : *end == 'M' ? value << 20 : *end == 'K' ? value << 10 : value;
}

static double slowest(float *sent, float *got, int count, int iterations) {
    double time, most;
    MPI_Barrier(MPI_COMM_WORLD);
    time = MPI_Wtime();
    for (int at = 0; at < iterations; at++)
        MPI_Allreduce(sent, got, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    time = (MPI_Wtime() - time) / iterations;
    MPI_Allreduce(&time, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

int main(int argc, char **argv) {
    long from = 1 << 20, to = 1 << 20;
    int rank, size, iterations = 20, option;
    char host[64];
    if (argc > 1 && strcmp(argv[1], "-h") == 0) {
        puts("USAGE: all_reduce_perf (stand-in of the vsml lab) [-a,--average <0/1/2/3>]");
        return 0;
    }
    while ((option = getopt(argc, argv, "b:e:f:n:g:c:a:")) != -1) {
        if (option == 'b') from = bytes(optarg);
        if (option == 'e') to = bytes(optarg);
        if (option == 'n') iterations = atoi(optarg);
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof host);
    if (rank == 0) puts("# stand-in of the vsml lab: all-reduce by MPI; there is no NCCL and no GPU here");
    for (int each = 0; each < size; each++) {
        char name[64];
        memcpy(name, host, sizeof name);
        MPI_Bcast(name, sizeof name, MPI_CHAR, each, MPI_COMM_WORLD);
        if (rank == 0) printf("#  Rank %2d Group  0 Pid %6d on %10s device  0 [0000:00:00] lab stand-in\n", each, 1, name);
    }
    if (rank == 0) puts("#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong");
    for (long now = from; now <= to; now *= 2) {
        int count = (int)(now / sizeof(float)), wrong = 0;
        float *sent = malloc(now), *got = malloc(now);
        for (int at = 0; at < count; at++) sent[at] = (float)(rank + 1);
        double time = slowest(sent, got, count, iterations);
        for (int at = 0; at < count; at++) wrong += got[at] != (float)(size * (size + 1) / 2);
        double algorithm = now / time / 1e9, bus = algorithm * 2 * (size - 1) / size;
        if (rank == 0)
            printf("%12ld  %12d     float     sum      -1  %8.1f  %6.2f  %6.2f  %6d  %8.1f  %6.2f  %6.2f  %6d\n", now,
                   count, time * 1e6, algorithm, bus, wrong, time * 1e6, algorithm, bus, wrong);
        free(sent);
        free(got);
    }
    MPI_Finalize();
    return 0;
}
