/* Integer mix after the idea of CoreMark: a linked list that is searched, reversed and merge-sorted; a small matrix
 * product; a state machine over text; a CRC over all results. One round is about 770 000 instructions. */
#include "workload.h"

#define NODES 256
#define DIM 16
#define TEXT 512

struct node {
    struct node *next;
    int32_t key;
    int32_t value;
};

static uint32_t crc32_step(uint32_t crc, uint32_t word)
{
    crc ^= word;
    for (int bit = 0; bit < 32; bit++)
        crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
    return crc;
}

static struct node *merge_sort(struct node *list, int by_value)
{
    if (!list || !list->next)
        return list;
    struct node *slow = list, *fast = list->next;
    while (fast && fast->next) {
        slow = slow->next;
        fast = fast->next->next;
    }
    struct node *right = merge_sort(slow->next, by_value);
    slow->next = NULL;
    struct node *left = merge_sort(list, by_value);
    struct node head, *tail = &head;
    while (left && right) {
        int take_left = by_value ? left->value <= right->value : left->key <= right->key;
        struct node **from = take_left ? &left : &right;
        tail->next = *from;
        tail = *from;
        *from = (*from)->next;
    }
    tail->next = left ? left : right;
    return head.next;
}

static uint32_t list_round(struct node *nodes, uint64_t *seed, uint32_t crc)
{
    for (int i = 0; i < NODES; i++) {
        uint64_t r = next_random(seed);
        nodes[i].key = (int32_t)(r & 0xffff);
        nodes[i].value = (int32_t)(r >> 16 & 0xffff);
        nodes[i].next = i + 1 < NODES ? &nodes[i + 1] : NULL;
    }
    struct node *list = merge_sort(nodes, 0);
    for (int probe = 0; probe < 16; probe++) {
        int32_t wanted = (int32_t)(next_random(seed) & 0xffff);
        struct node *at = list;
        while (at->next && at->key < wanted)
            at = at->next;
        crc = crc32_step(crc, (uint32_t)at->value);
    }
    struct node *reversed = NULL;
    while (list) {
        struct node *next = list->next;
        list->next = reversed;
        reversed = list;
        list = next;
    }
    list = merge_sort(reversed, 1);
    for (int i = 0; list; list = list->next, i++)
        if (i % 8 == 0)
            crc = crc32_step(crc, (uint32_t)list->key);
    return crc;
}

static uint32_t matrix_round(uint64_t *seed, uint32_t crc)
{
    static int16_t a[DIM][DIM], b[DIM][DIM];
    int32_t sum = 0;
    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++) {
            uint64_t r = next_random(seed);
            a[i][j] = (int16_t)r;
            b[i][j] = (int16_t)(r >> 16);
        }
    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++) {
            int32_t cell = 0;
            for (int k = 0; k < DIM; k++)
                cell += ((int32_t)a[i][k] * b[k][j]) >> 6;
            sum += cell > 0 ? cell >> 3 : cell ^ 0x55;
        }
    return crc32_step(crc, (uint32_t)sum);
}

/* Recognises numbers in text: integer, hexadecimal, decimal, exponent; counts what it saw. */
static uint32_t state_round(uint64_t *seed, uint32_t crc)
{
    enum { START, INTEGER, HEX, FRACTION, EXPONENT, OTHER, STATES } state = START;
    static const char alphabet[] = "0123456789.,ex+- ";
    uint32_t seen[STATES] = { 0 };
    for (int i = 0; i < TEXT; i++) {
        char c = alphabet[next_random(seed) % (sizeof alphabet - 1)];
        int digit = c >= '0' && c <= '9';
        if (c == ',' || c == ' ') {
            seen[state]++;
            state = START;
            continue;
        }
        switch (state) {
        case START: state = digit ? INTEGER : c == '.' ? FRACTION : c == '+' || c == '-' ? INTEGER : OTHER; break;
        case INTEGER: state = digit ? INTEGER : c == '.' ? FRACTION : c == 'e' ? EXPONENT : c == 'x' ? HEX : OTHER; break;
        case HEX: state = digit || c == 'e' ? HEX : OTHER; break;
        case FRACTION: state = digit ? FRACTION : c == 'e' ? EXPONENT : OTHER; break;
        case EXPONENT: state = digit || c == '-' || c == '+' ? EXPONENT : OTHER; break;
        default: break;
        }
    }
    for (int i = 0; i < STATES; i++)
        crc = crc32_step(crc, seen[i]);
    return crc;
}

uint64_t intmix(uint64_t rounds)
{
    static struct node nodes[NODES];
    uint64_t seed = 0x6c61737376697367u, sum = 0;
    uint32_t crc = 0xffffffffu;
    for (uint64_t i = 0; i < rounds; i++) {
        crc = list_round(nodes, &seed, crc);
        for (int j = 0; j < 4; j++) {
            crc = matrix_round(&seed, crc);
            crc = state_round(&seed, crc);
        }
        sum = mix(sum, crc);
    }
    return sum;
}
