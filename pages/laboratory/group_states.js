// The states of each kind of group and the moves between them. Written by rejoin.coordinator.state_diagram.

export const GROUP_STATES = {
  classic: {
    states: ["Empty", "PreparingRebalance", "CompletingRebalance", "Stable"],
    moves: [
      ["Empty", "PreparingRebalance"],
      ["PreparingRebalance", "CompletingRebalance"],
      ["PreparingRebalance", "Empty"],
      ["CompletingRebalance", "Stable"],
      ["CompletingRebalance", "PreparingRebalance"],
      ["Stable", "PreparingRebalance"],
    ],
  },
  consumer: {
    states: ["Empty", "Assigning", "Reconciling", "Stable"],
    moves: [
      ["Empty", "Assigning"],
      ["Empty", "Stable"],
      ["Assigning", "Reconciling"],
      ["Assigning", "Stable"],
      ["Assigning", "Empty"],
      ["Reconciling", "Stable"],
      ["Reconciling", "Assigning"],
      ["Reconciling", "Empty"],
      ["Stable", "Reconciling"],
      ["Stable", "Assigning"],
      ["Stable", "Empty"],
    ],
  },
  share: {
    states: ["Empty", "Stable"],
    moves: [
      ["Empty", "Stable"],
      ["Stable", "Empty"],
    ],
  },
  streams: {
    states: ["Empty", "NotReady", "Assigning", "Reconciling", "Stable"],
    moves: [
      ["Empty", "NotReady"],
      ["Empty", "Assigning"],
      ["Empty", "Reconciling"],
      ["Empty", "Stable"],
      ["NotReady", "Assigning"],
      ["NotReady", "Reconciling"],
      ["NotReady", "Stable"],
      ["NotReady", "Empty"],
      ["Assigning", "NotReady"],
      ["Assigning", "Reconciling"],
      ["Assigning", "Stable"],
      ["Assigning", "Empty"],
      ["Reconciling", "NotReady"],
      ["Reconciling", "Stable"],
      ["Reconciling", "Assigning"],
      ["Reconciling", "Empty"],
      ["Stable", "NotReady"],
      ["Stable", "Reconciling"],
      ["Stable", "Assigning"],
      ["Stable", "Empty"],
    ],
  },
};
