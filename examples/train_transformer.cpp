// Trains a character-level transformer with FSDP2 in C++, on any number of processes; saves and resumes.
//
//     ninja -C build/release example_train_transformer
//     torchrun --no-python --nproc-per-node 2 build/release/examples/example_train_transformer --save runs/a
//     torchrun --no-python --nproc-per-node 2 build/release/examples/example_train_transformer --save runs/a --resume
//
// Without torchrun, set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in each process; one process needs none.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "plimsoll/distributed/collectives.h"
#include "plimsoll/distributed/device_mesh.h"
#include "plimsoll/fsdp/checkpoint/checkpoint.h"
#include "plimsoll/fsdp/fully_shard.h"
#include "plimsoll/nn/hooks/hooked.h"
#include "plimsoll/nn/modules.h"
#include "plimsoll/nn/optim/adamw.h"

namespace distributed = plimsoll::distributed;
namespace fsdp = plimsoll::fsdp;
namespace nn = plimsoll::nn;

// --- The command line ------------------------------------------------------------------------------------------------

constexpr const char* kUsage = R"(example_train_transformer [option value]…
  --steps 200        how many steps in all, those before a resume included
  --batch 8          sequences a step, on each rank
  --context 64       characters a sequence
  --layers 5  --dim 128  --heads 4
  --lr 0.002
  --text FILE        training text (default: the ship's log in examples/data)
  --log-every 20     steps between lines if output is not a terminal
  --save FOLDER      checkpoints
  --save-every 100   steps between checkpoints
  --resume           resume from the newest checkpoint in the folder
  --export FOLDER    write the final model as model.safetensors
  --sample 160       characters to sample at the end
  --backend gloo     or nccl, or fake: one process as rank 0 of --world-size, for the pretend GPU
  --world-size N     with fake
  --device cpu       or cuda
)";

class Options {
 public:
  Options(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string name = argv[i];
      const auto found = values_.find(name);
      if (found == values_.end()) throw std::invalid_argument("unknown option " + name + "\n\n" + kUsage);
      if (name == "--resume") {
        found->second = "1";
      } else if (++i < argc) {
        found->second = argv[i];
      } else {
        throw std::invalid_argument(name + " needs a value\n\n" + kUsage);
      }
    }
  }
  const std::string& operator[](const char* name) const { return values_.at(name); }
  template <class Number = int>
  Number number(const char* name) const {
    Number value{};
    const std::string& text = values_.at(name);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) return value;
    throw std::invalid_argument(std::string(name) + " is " + text + ", expected a number");
  }

 private:
  std::map<std::string, std::string, std::less<>> values_ = {
      {"--steps", "200"},    {"--batch", "8"},    {"--context", "64"},     {"--layers", "5"},
      {"--dim", "128"},      {"--heads", "4"},    {"--lr", "0.002"},       {"--text", PLIMSOLL_EXAMPLE_TEXT},
      {"--log-every", "20"}, {"--save", ""},      {"--save-every", "100"}, {"--resume", ""},
      {"--export", ""},      {"--sample", "160"}, {"--backend", "gloo"},   {"--world-size", "1"},
      {"--device", "cpu"}};
};

// --- The model -------------------------------------------------------------------------------------------------------

struct AttentionImpl : torch::nn::Module {
  AttentionImpl(int dim, int heads) : heads(heads) {
    qkv = register_module("qkv", nn::Linear(dim, 3 * dim));
    out = register_module("out", nn::Linear(dim, dim));
  }
  at::Tensor forward(const at::Tensor& x) {
    const auto parts = qkv(x).view({x.size(0), x.size(1), 3, heads, -1}).permute({2, 0, 3, 1, 4}).unbind(0);
    const auto y = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, /*is_causal=*/true);
    return out(y.transpose(1, 2).reshape(x.sizes()));
  }
  int heads;
  nn::Linear qkv{nullptr}, out{nullptr};
};
TORCH_MODULE_IMPL(Attention, nn::Hooked<AttentionImpl>);

struct BlockImpl : torch::nn::Module {
  BlockImpl(int dim, int heads) {
    norm1 = register_module("norm1", nn::LayerNorm(torch::nn::LayerNormOptions({dim})));
    attention = register_module("attention", Attention(dim, heads));
    norm2 = register_module("norm2", nn::LayerNorm(torch::nn::LayerNormOptions({dim})));
    up = register_module("up", nn::Linear(dim, 4 * dim));
    down = register_module("down", nn::Linear(4 * dim, dim));
  }
  at::Tensor forward(at::Tensor x) {
    x = x + attention(norm1(x));
    return x + down(at::gelu(up(norm2(x))));
  }
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  Attention attention{nullptr};
  nn::Linear up{nullptr}, down{nullptr};
};
TORCH_MODULE_IMPL(Block, nn::Hooked<BlockImpl>);

struct TransformerImpl : torch::nn::Module {
  TransformerImpl(int vocabulary, int context, int dim, int heads, int layers) {
    tokens = register_module("tokens", nn::Embedding(vocabulary, dim));
    places = register_module("places", nn::Embedding(context, dim));
    blocks = register_module("blocks", torch::nn::ModuleList());
    for (int i = 0; i < layers; ++i) blocks->push_back(Block(dim, heads));
    norm = register_module("norm", nn::LayerNorm(torch::nn::LayerNormOptions({dim})));
    head = register_module("head", nn::Linear(dim, vocabulary));
    const at::NoGradGuard no_grad;
    for (auto& weight : {tokens->weight, places->weight}) weight.mul_(0.1);  // Learns faster.
  }
  at::Tensor forward(const at::Tensor& text) {
    auto x = tokens(text) + places(at::arange(text.size(1), text.options()));
    for (const auto& entry : *blocks) x = std::dynamic_pointer_cast<nn::Hooked<BlockImpl>>(entry)->forward(x);
    return head(norm(x).flatten(0, 1));  // A row for each character.
  }
  nn::Embedding tokens{nullptr}, places{nullptr};
  torch::nn::ModuleList blocks{nullptr};
  nn::LayerNorm norm{nullptr};
  nn::Linear head{nullptr};
};
TORCH_MODULE_IMPL(Transformer, nn::Hooked<TransformerImpl>);

// --- The text --------------------------------------------------------------------------------------------------------

class Text {
 public:
  explicit Text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::invalid_argument("cannot read " + path + "; give a text with --text FILE");
    const std::string all{std::istreambuf_iterator<char>(file), {}};
    characters_ = all;
    std::sort(characters_.begin(), characters_.end());
    characters_.erase(std::unique(characters_.begin(), characters_.end()), characters_.end());
    std::vector<std::int64_t> tokens;
    for (const char c : all) tokens.push_back(static_cast<std::int64_t>(characters_.find(c)));
    tokens_ = at::tensor(tokens);
  }
  int vocabulary() const { return static_cast<int>(characters_.size()); }
  std::int64_t length() const { return tokens_.size(0); }
  char character(std::int64_t token) const { return characters_.at(static_cast<std::size_t>(token)); }

  // Depends only on the step's number, so that a resumed run sees the same batches. One character longer than
  // the context: the targets are the inputs shifted by one.
  at::Tensor batch(std::int64_t number, int sequences, int context) const {
    std::vector<at::Tensor> rows;
    for (int i = 0; i < sequences; ++i) {
      const auto pick = static_cast<std::uint64_t>(number * sequences + i + 1) * 0x9E3779B97F4A7C15ULL >> 16;
      const auto start = static_cast<std::int64_t>(pick % static_cast<std::uint64_t>(length() - context));
      rows.push_back(tokens_.narrow(0, start, context + 1));
    }
    return at::stack(rows);
  }
  at::Tensor beginning(int length) const { return tokens_.narrow(0, 0, length).unsqueeze(0); }

 private:
  std::string characters_;
  at::Tensor tokens_;
};

// --- Progress --------------------------------------------------------------------------------------------------------

class Progress {
 public:
  Progress(int steps, int log_every, bool shown) : steps_(steps), log_every_(log_every), shown_(shown) {}
  void step(int step, double loss, double tokens) {
    const auto now = Clock::now();
    tokens_ += tokens;
    const bool last = step == steps_;
    if (!shown_ || (!terminal_ && step % log_every_ != 0 && !last)) return;
    const double seconds = std::chrono::duration<double>(now - since_).count();
    std::printf("%sstep %*d/%d  loss %.4f  %6.0f tokens/s%s", terminal_ ? "\r" : "", width(), step, steps_, loss,
                tokens_ / seconds, terminal_ && !last ? "   " : "\n");
    std::fflush(stdout);
    if (terminal_ && seconds < 1) return;  // Average over at least a second.
    since_ = now;
    tokens_ = 0;
  }
  // Called before another line is printed.
  void say(const std::string& line) const {
    if (shown_) std::printf("%s%s\n", terminal_ ? "\r\033[K" : "", line.c_str());
    std::fflush(stdout);
  }

 private:
  using Clock = std::chrono::steady_clock;
  int width() const { return static_cast<int>(std::to_string(steps_).size()); }
  int steps_, log_every_;
  bool shown_;
  bool terminal_ = isatty(STDOUT_FILENO) != 0;
  double tokens_ = 0;
  Clock::time_point since_ = Clock::now();
};

// --- Training --------------------------------------------------------------------------------------------------------

void join(const Options& options) {
  if (options["--backend"] == "fake") {
    distributed::init_process_group({.backend = "fake", .rank = 0, .world_size = options.number("--world-size")});
  } else if (std::getenv("WORLD_SIZE") == nullptr) {
    distributed::init_process_group(
        {.backend = options["--backend"], .store = c10::make_intrusive<c10d::HashStore>(), .rank = 0, .world_size = 1});
  } else {
    distributed::init_process_group({.backend = options["--backend"]});
  }
  // A model this small is not faster on several threads; torchrun also sets one thread.
  if (std::getenv("OMP_NUM_THREADS") == nullptr) at::set_num_threads(1);
}

double mean_over_ranks(const at::Tensor& loss) {
  auto sum = loss.detach().clone();
  distributed::all_reduce(sum, distributed::default_group(), c10d::ReduceOp::SUM);
  return sum.item<double>() / distributed::get_world_size();
}

// All ranks call this and get the same text, because each rank holds a part of the model.
std::string written(Transformer& model, const Text& text, int context, int length, at::Device device) {
  const at::NoGradGuard no_grad;
  at::manual_seed(3);
  auto tokens = text.beginning(context);
  for (int i = 0; i < length; ++i) {
    const auto logits = model(tokens.narrow(1, tokens.size(1) - context, context).to(device)).narrow(0, context - 1, 1);
    tokens = at::cat({tokens, at::multinomial(at::softmax(logits.cpu() / 0.7, -1), 1)}, 1);
  }
  std::string found;
  for (int i = 0; i < length; ++i) found += text.character(tokens[0][context + i].item<std::int64_t>());
  return found;
}

void train(const Options& options) {
  join(options);
  const int rank = distributed::get_rank(), world = distributed::get_world_size();
  const int steps = options.number("--steps"), batch = options.number("--batch"), context = options.number("--context");
  const at::Device device(options["--device"]);
  const Text text(options["--text"]);
  const double lr = options.number<double>("--lr");

  at::manual_seed(1);  // The same model on all ranks, before it is sharded.
  Transformer model(text.vocabulary(), context, options.number("--dim"), options.number("--heads"),
                    options.number("--layers"));
  std::int64_t parameters = 0;
  for (const auto& parameter : model->parameters()) parameters += parameter.numel();

  const auto mesh = distributed::DeviceMesh::init(device.type(), {world});
  for (const auto& block : *model->blocks) fsdp::fully_shard(block, {.mesh = mesh});
  fsdp::fully_shard(model, {.mesh = mesh});
  nn::AdamW optimizer(model->parameters(), {.lr = lr, .betas = {0.9, 0.95}});

  Progress progress(steps, std::max(1, options.number("--log-every")), rank == 0);
  progress.say(c10::str(parameters, " parameters over ", world, world == 1 ? " rank, " : " ranks, ", text.length(),
                        " characters of ", text.vocabulary(), " kinds"));
  int step = 0;
  if (!options["--resume"].empty()) {
    if (options["--save"].empty()) throw std::invalid_argument("--resume needs --save FOLDER to resume from");
    if (const auto found = fsdp::load_checkpoint(options["--save"], model, &optimizer)) {
      step = static_cast<int>(found->step);
      progress.say(c10::str("resumed from step ", step, " in ", options["--save"]));
    }
  }
  while (step < steps) {
    optimizer.options().lr = lr * std::min(1.0, (step + 1) / 20.0);
    const auto characters = text.batch(std::int64_t{step} * world + rank, batch, context).to(device);
    const auto logits = model(characters.slice(1, 0, context));
    const auto loss = at::cross_entropy_loss(logits, characters.slice(1, 1).flatten());
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    progress.step(++step, mean_over_ranks(loss), double(batch) * context * world);
    if (!options["--save"].empty() && (step % options.number("--save-every") == 0 || step == steps)) {
      fsdp::save_checkpoint(options["--save"], static_cast<std::uint64_t>(step), model, &optimizer);
      progress.say(c10::str("saved step ", step, " in ", options["--save"]));
    }
  }
  if (!options["--export"].empty()) {
    fsdp::save_state(model, options["--export"]);
    progress.say("wrote " + options["--export"] + "/model.safetensors");
  }
  if (options["--backend"] != "fake" && options.number("--sample") > 0) {
    progress.say("\n…" + written(model, text, context, options.number("--sample"), device) + "…");
  }
  distributed::destroy_process_group();
}

int main(int argc, char** argv) {
  try {
    train(Options(argc, argv));
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "example_train_transformer: %s\n", error.what_without_backtrace());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "example_train_transformer: %s\n", error.what());
    return 1;
  }
}
