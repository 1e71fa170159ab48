// A step of beam search, and the sentences along back pointers.

struct Candidate {  // a continuation of a partial sentence
    double total;   // by which it is ranked
    unsigned slot, column;
};

struct BeamScores {  // of one beam
    const REAL* log_probs;  // (S, V)
    const REAL* penalty;    // (V,) or null
    const double* totals;   // (S,)
    Size S, V, end_token;

    __device__ REAL ranked(Size slot, Size column) const {
        REAL value = log_probs[slot * V + column];
        return penalty ? value - penalty[column] : value;
    }

    __device__ Candidate candidate(Size slot, Size column) const {
        return {totals[slot] + ranked(slot, column), static_cast<unsigned>(slot), static_cast<unsigned>(column)};
    }

    // The order of continuations: of equals, the first word of the first sentence.
    __device__ bool better(const Candidate& a, const Candidate& b) const {
        if (a.total != b.total) return a.total > b.total;
        if (a.slot != b.slot) return a.slot < b.slot;
        REAL x = ranked(a.slot, a.column), y = ranked(b.slot, b.column);
        return x != y ? x > y : a.column < b.column;
    }
};

// The best total among the columns of this thread, without <END>; `most` gets their largest log-probability.
__device__ inline double best_of_thread(const BeamScores& beam, REAL& most) {
    double best = -INFINITY;
    for (Size slot = 0; slot < beam.S; ++slot) {
        REAL own = REAL(-INFINITY);
#pragma unroll 4
        for (Size j = threadIdx.x; j < beam.V; j += blockDim.x) {
            REAL value = beam.ranked(slot, j);
            most = largest(value, most);
            if (value > own && j != beam.end_token) own = value;
        }
        double total = beam.totals[slot] + own;
        if (total > best) best = total;
    }
    return best;
}

// A total that at least K continuations reach, or minus infinity. `bests` has an element per thread.
__device__ inline double bound_of_best(double best, Size K, double* bests, double* bound) {
    int width = WARP;  // of groups of threads, of which each has a best total of its own
    while (width > 1 && blockDim.x / width < 2 * K) width /= 2;
    for (int distance = width / 2; distance; distance /= 2) {
        double other = __shfl_xor_sync(0xffffffffu, best, distance);
        if (other > best) best = other;
    }
    int groups = blockDim.x / width, group = threadIdx.x / width;
    bool leads = threadIdx.x % width == 0;
    if (leads) bests[group] = best;
    if (threadIdx.x == 0) *bound = -INFINITY;
    __syncthreads();
    if (leads) {
        Size rank = 0;
        for (int k = 0; k < groups; ++k) rank += bests[k] > best || (bests[k] == best && k < group);
        if (rank == K - 1) *bound = best;
    }
    __syncthreads();
    return *bound;
}

// Write the K best continuations to `chosen`, best first, and return how many there are. `list` has an element per
// thread. Each round finds the best one that comes after the round before.
__device__ inline Size choose_in_rounds(const BeamScores& beam, Size K, Candidate* list, Candidate* chosen) {
    for (Size rank = 0; rank < K; ++rank) {
        Candidate best = {-INFINITY, 0, 0};
        for (Size slot = 0; slot < beam.S; ++slot)
            for (Size j = threadIdx.x; j < beam.V; j += blockDim.x) {
                Candidate each = beam.candidate(slot, j);
                if (j != beam.end_token && each.total > -INFINITY && beam.better(each, best) &&
                    (rank == 0 || beam.better(chosen[rank - 1], each)))
                    best = each;
            }
        list[threadIdx.x] = best;
        __syncthreads();
        for (unsigned half = blockDim.x / 2; half; half /= 2) {
            unsigned mine = threadIdx.x, other = mine + half;
            if (mine < half && beam.better(list[other], list[mine])) list[mine] = list[other];
            __syncthreads();
        }
        if (!(list[0].total > -INFINITY)) return rank;
        if (threadIdx.x == 0) chosen[rank] = list[0];
        __syncthreads();
    }
    return K;
}

// The same in two passes over the log-probabilities, unless many continuations are equal.
__device__ inline Size choose(const BeamScores& beam, Size K, Candidate* list, Candidate* chosen, double* bests,
                              double* bound, unsigned* count, REAL& most) {
    double best = best_of_thread(beam, most), least = bound_of_best(best, K, bests, bound);
    if (best >= least && best > -INFINITY)
        for (Size slot = 0; slot < beam.S; ++slot) {
#pragma unroll 4
            for (Size j = threadIdx.x; j < beam.V; j += blockDim.x) {
                double total = beam.totals[slot] + beam.ranked(slot, j);
                if (total >= least && total > -INFINITY && j != beam.end_token) {
                    unsigned at = atomicAdd(count, 1u);
                    if (at < blockDim.x) list[at] = beam.candidate(slot, j);
                }
            }
        }
    __syncthreads();
    unsigned found = *count;
    if (found > blockDim.x) return choose_in_rounds(beam, K, list, chosen);
    if (threadIdx.x < found) {
        Candidate own = list[threadIdx.x];
        Size rank = 0;
        for (unsigned k = 0; k < found; ++k) rank += beam.better(list[k], own);
        if (rank < K) chosen[rank] = own;
    }
    __syncthreads();
    return found < K ? found : K;
}

// Write the continuations by <END> to `ended`, best first: all, or those among the K best of all. `ends` has an
// element per slot; `count` is zero before and their number afterwards.
__device__ inline void choose_ends(const BeamScores& beam, Size K, bool all, const Candidate* chosen, Size num_chosen,
                                   Candidate* ends, Candidate* ended, unsigned* count) {
    for (Size s = threadIdx.x; s < beam.S; s += blockDim.x) ends[s] = beam.candidate(s, beam.end_token);
    __syncthreads();
    for (Size s = threadIdx.x; s < beam.S; s += blockDim.x) {
        Candidate own = ends[s];
        if (!(own.total > -INFINITY)) continue;
        Size rank = 0, among_ends = 0;
        for (Size k = 0; k < num_chosen; ++k) rank += beam.better(chosen[k], own);
        for (Size k = 0; k < beam.S; ++k) among_ends += beam.better(ends[k], own);
        if (all || rank + among_ends < K) {
            ended[among_ends] = own;
            atomicAdd(count, 1u);
        }
    }
    __syncthreads();
}

// Insert finished sentences into the K best of their beam, best first, behind their equals. One thread does it.
__device__ inline void insert_ended(const Candidate* ended, Size count, double norm, Size length, Size K,
                                    double* scores, double* totals, Size* lengths, Size* slots) {
    Size kept = 0, added = 0;  // how many of the old ones and of the new ones are among the K best
    while (kept + added < K) {
        double old = scores[kept], next = added < count ? ended[added].total / norm : -INFINITY;
        if (!(old > -INFINITY) && !(next > -INFINITY)) break;
        if (old >= next)
            ++kept;
        else
            ++added;
    }
    for (Size at = kept + added; added;) {  // from the last on, so that nothing is overwritten before it is moved
        --at;
        double next = ended[added - 1].total / norm;
        if (kept && !(scores[kept - 1] >= next)) {
            --kept;
            scores[at] = scores[kept];
            totals[at] = totals[kept];
            lengths[at] = lengths[kept];
            slots[at] = slots[kept];
        } else {
            --added;
            scores[at] = next;
            totals[at] = ended[added].total;
            lengths[at] = length;
            slots[at] = ended[added].slot;
        }
    }
}

// The penalty of <END> is zero. `places` and `penalties` may be null.
BLOCK_KERNEL(beam_step)(const REAL* log_probs, const REAL* penalties, const Size* places, const Size* beams,
                        const Size* status, const double* totals, double* scores, double* found_totals,
                        double* open_totals, Size* lengths, Size* slots, Size* counts, Size* open_lengths,
                        Size* pointers, Size* next_beams, Size* next_status, double* next_totals, Size* words,
                        Size* rows, REAL* most_of, Size b, Size B, Size S, Size V, Size K, Size end_token,
                        Size length, Size last, Size n_best, double norm, double largest_norm, REAL limit) {
    SHARED(Candidate, list);                                            // (threads,)
    Candidate* chosen = list + blockDim.x;                              // (K,)
    Candidate* ends = chosen + K;                                       // (S,)
    Candidate* ended = ends + S;                                        // (S,)
    double* bests = reinterpret_cast<double*>(ended + S);               // (threads,) and the bound
    unsigned* count = reinterpret_cast<unsigned*>(bests + blockDim.x + 1);  // of the list, of ends
    REAL* workspace = reinterpret_cast<REAL*>(count + 2);               // an element per warp
    for (Size i = blockIdx.x; i < b; i += gridDim.x) {
        Size place = places ? places[i] : i, beam = beams[place];
        bool going = status[place] == 1;
        double* open = next_totals + i * K;
        Size *word = words + i * K, *row = rows + i * K, *said = pointers + beam * K, *parent = said + B * K;
        for (Size k = threadIdx.x; k < K; k += blockDim.x) {
            open[k] = -INFINITY;
            word[k] = said[k] = parent[k] = 0;
            row[k] = place * S;
        }
        if (threadIdx.x < 2) count[threadIdx.x] = 0;
        __syncthreads();
        BeamScores own = {log_probs + place * S * V, penalties ? penalties + i * V : nullptr, totals + place * S,
                          S, V, end_token};
        REAL most = REAL(-INFINITY);
        Size num_chosen = 0;
        if (going && !last) num_chosen = choose(own, K, list, chosen, bests, bests + blockDim.x, count, most);
        if (going && last)
            for (Size s = threadIdx.x; s < S; s += blockDim.x) most = largest(own.ranked(s, end_token), most);
        if (going) choose_ends(own, K, last, chosen, num_chosen, ends, ended, count + 1);
        most = block_max(most, workspace);
        for (Size k = threadIdx.x; k < num_chosen; k += blockDim.x) {
            Candidate each = chosen[k];
            open[k] = totals[place * S + each.slot] + own.log_probs[each.slot * V + each.column];
            word[k] = said[k] = each.column;
            row[k] = place * S + each.slot;
            parent[k] = each.slot;
        }
        if (going && !num_chosen)
            for (Size s = threadIdx.x; s < S; s += blockDim.x) open_totals[beam * K + s] = totals[place * S + s];
        __syncthreads();
        if (threadIdx.x == 0) {
            Size begin = beam * K, worst = n_best < K ? n_best - 1 : K - 1;
            if (count[1])
                insert_ended(ended, count[1], norm, length, K, scores + begin, found_totals + begin, lengths + begin,
                             slots + begin);
            if (going && !num_chosen) open_lengths[beam] = length;
            double best = -INFINITY;
            for (Size k = 0; k < num_chosen; ++k)
                if (open[k] > best) best = open[k];
            Size finished = counts[beam] + count[1];
            counts[beam] = finished;
            bool goes_on = num_chosen && best / largest_norm > scores[begin + worst] && finished < K;
            next_beams[i] = beam;
            next_status[i] = !(most <= limit) ? 2 : goes_on;
            most_of[i] = most;
        }
        __syncthreads();  // the shared memory is read until here
    }
}

// The words (M, T) of each sentence, and its slot after 0, 1, ... T words, by pointers (T, 2, B, K).
KERNEL(beam_words)(const Size* pointers, const Size* beams, const Size* lengths, const Size* slots, Size* words,
                   Size* path, Size M, Size T, Size B, Size K) {
    FOR_EACH(i, M) {
        Size slot = slots[i];
        path[i * (T + 1) + T] = slot;
        for (Size t = T - 1; t >= 0; --t) {
            Size at = (2 * t * B + beams[i]) * K + slot, said = 0;
            if (t < lengths[i]) {
                said = pointers[at];
                slot = pointers[at + B * K];
            }
            words[i * T + t] = said;
            path[i * (T + 1) + t] = slot;
        }
    }
}
